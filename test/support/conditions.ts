/** Makes random conditions on metadata, and evaluates them plainly. Tests compare the engine with that. */
import * as fc from 'fast-check';
import { conditionDepthMax } from '../../src/index/terms/condition.ts';
import { instantOf } from '../../src/index/terms/instant.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** JSON values: doubles in several spellings, and strings with characters beyond ASCII and the BMP, and lone surrogates. */
const scalars = [
  '0',
  '-0',
  '1',
  '1.0',
  '10e-1',
  '-1',
  '-1.5',
  '2.5',
  '1e2',
  '100',
  '12',
  '""',
  '"a"',
  '"ab"',
  '"\\u0061"',
  '"\\uffee"',
  '"😀"',
  '"\\ud83d\\ude00"',
  '"\\ud800"',
  '"\\ud83d"',
  '"1"',
  '"2026-11-27"',
  '"2026-11-27T01:00:00+01:00"',
  '"2026-11-26T23:59:59.9999999999Z"',
  '"2026-11-27t00:00:00.000000001z"',
  '"2024-02-29T23:59:60-00:00"',
  '"2024-02-30"',
  '"2026-11-27T00:00:00"',
  '"2026-11-27 01:00:00.5+0100"',
  '"2026-11-27 00:00 UTC"',
  '"2026-11-27 24:00"',
  'true',
  'false',
  'null',
];
const names = ['kind', 'é', '\\u006bind'];
/** Paths, of which documents have the first as a top-level field, too. */
const paths = ['kind.x', 'kind.x.y', 'é.y', 'k\\u0069nd.y'];

const scalar = fc.constantFrom(...scalars);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    { arbitrary: scalar, weight: 12 },
    fc.array(tie('value'), { maxLength: 2 }).map((items) => `[${items.join(',')}]`),
    fc
      .array(fc.tuple(fc.constantFrom('x', 'y'), tie('value')), { maxLength: 2 })
      .map((members) => `{${members.map(([name, item]) => `"${name}":${item}`).join(',')}}`),
  ),
}));
export const name = fc.constantFrom(...names, ...paths);
const nestedObject = fc
  .array(fc.tuple(fc.constantFrom('x', 'y'), fc.oneof(value, fc.constant('{"y":"a"}'))), { maxLength: 2 })
  .map((members) => `{${members.map(([field, item]) => `"${field}":${item}`).join(',')}}`);
const objects = fc
  .array(fc.oneof({ arbitrary: nestedObject, weight: 4 }, value), { maxLength: 3 })
  .map((items) => `[${items.join(',')}]`);
const fieldValue = fc.oneof({ arbitrary: value, weight: 3 }, { arbitrary: nestedObject, weight: 2 }, objects);
export const metadata = fc
  .array(fc.tuple(fc.constantFrom(...names, paths[0]!), fieldValue), { maxLength: 4 })
  .map((members) => `{${members.map(([field, item]) => `"${field}":${item}`).join(',')}}`);

const numbers = fc.constantFrom(...scalars.filter((token) => /^[-\d]/.test(token)));
const strings = fc.constantFrom(...scalars.filter((token) => token.startsWith('"')));
const boundOf = (bound: fc.Arbitrary<string>) =>
  fc
    .tuple(fc.option(fc.constantFrom('gt', 'gte')), bound, fc.option(fc.constantFrom('lt', 'lte')), bound)
    .map(([low, from, high, to]) => [
      ...(low === null ? [] : [`"${low}":${from}`]),
      ...(high === null ? [] : [`"${high}":${to}`]),
    ]);
const rarely = <T>(one: fc.Arbitrary<T>) => fc.option(one, { freq: 2 });
const dates = fc.constantFrom(...scalars.filter((token) => dateOf(token) !== undefined));
const operators = fc
  .tuple(
    fc.oneof({ arbitrary: fc.constant([]), weight: 2 }, boundOf(numbers), boundOf(strings)),
    rarely(fc.array(value, { maxLength: 4 }).map((values) => `"in":[${values.join(',')}]`)),
    rarely(value.filter((text) => !text.startsWith('{')).map((text) => `"not":${text}`)),
    rarely(scalar.map((text) => `"contains":${text}`)),
    rarely(fc.array(scalar, { maxLength: 3 }).map((values) => `"contains_any":[${values.join(',')}]`)),
    rarely(
      fc
        .array(scalar, { minLength: 1, maxLength: 3 })
        .map((values) => `"contains_all":[${values.join(',')}]`),
    ),
    rarely(fc.boolean().map((exists) => `"exists":${exists}`)),
    rarely(strings.map((text) => `"starts_with":${text}`)),
    rarely(dates.map((date) => `"after":${date}`)),
    rarely(dates.map((date) => `"before":${date}`)),
  )
  .map(([bounds, ...others]) => [...bounds, ...others.filter((one) => one !== null)])
  .filter((parts) => parts.length > 0)
  .map((parts) => `{${parts.join(',')}}`);
export const conditions = fc.oneof(
  operators,
  value.filter((text) => !text.startsWith('{')),
  operators.map((text) => `{"not":${text}}`),
);
export const { where: wherePart } = fc.letrec<{ where: string }>((tie) => ({
  where: fc
    .tuple(
      fc.array(fc.tuple(name, conditions), { maxLength: 2 }),
      fc.option(fc.array(tie('where'), { maxLength: 3 }), { freq: 3, maxDepth: 2, nil: null }),
    )
    .map(([members, anyOf]) => {
      const fields = members.map(([field, text]) => `"${field}":${text}`);
      return `{${[...fields, ...(anyOf === null ? [] : [`"any_of":[${anyOf.join(',')}]`])].join(',')}}`;
    }),
}));

/** How deep bodies may be nested. */
const jsonDepthMax = 16;

/** Conditions of a field: constants and, where given, others, within any number of `not`. */
function fieldCondition(depth: number, others: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  const leaf = fc.oneof(fc.constant('{"in":[]}'), ...others);
  if (depth >= jsonDepthMax - 1) return leaf;
  const inner = fc.memo((level) => (level >= jsonDepthMax - 1 ? leaf : fc.oneof(leaf, negated(level))));
  const negated = (level: number): fc.Arbitrary<string> =>
    fc
      .tuple(fc.boolean(), inner(level + 1))
      .filter(([, part]) => part.startsWith('{'))
      .map(([beside, part]) => `{${beside ? '"in":[],' : ''}"not":${part}}`);
  return fc.oneof(leaf, negated(depth));
}

/** Objects with `any_of` up to the bound of depth. */
export function whereOf(others: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  const object = (depth: number): fc.Arbitrary<string> => {
    const members = fc.array(fc.tuple(name, fieldCondition(2 * depth, others)), { maxLength: 2 });
    const anyOf =
      depth === conditionDepthMax
        ? fc.constant(null)
        : fc.option(fc.array(object(depth + 1), { maxLength: 3 }), { freq: 3 });
    return fc.tuple(members, anyOf).map(([fields, any]) => {
      const texts = fields.map(([field, text]) => `"${field}":${text}`);
      return `{${[...texts, ...(any === null ? [] : [`"any_of":[${any.join(',')}]`])].join(',')}}`;
    });
  };
  return object(1);
}

type JsonObject = { readonly [name: string]: Json };

function isObject(one: Json): one is JsonObject {
  return typeof one === 'object' && one !== null && !Array.isArray(one);
}

/** The values that a path finds, and whether it went through an array. */
function reached(
  from: Json,
  path: readonly string[],
): { readonly found: readonly Json[]; readonly many: boolean } {
  const [first, ...rest] = path;
  if (first === undefined) return { found: [from], many: false };
  if (Array.isArray(from)) {
    const parts = (from as readonly Json[]).filter(isObject).map((item) => reached(item, path).found);
    return { found: parts.flat(), many: true };
  }
  return isObject(from) && Object.hasOwn(from, first)
    ? reached(from[first]!, rest)
    : { found: [], many: false };
}

/** The value of a field: of the top-level one of that very name, or else of the nested one. */
export function fieldOf(document: JsonObject, field: string): Json | undefined {
  if (Object.hasOwn(document, field)) return document[field];
  const { found, many } = reached(document, field.split('.'));
  if (found.length === 0) return undefined;
  return many ? found.flatMap((one) => (Array.isArray(one) ? (one as readonly Json[]) : [one])) : found[0];
}

/**
 * Whether a document meets a condition `where`. Values are as `JSON.parse` reads them: of a key that is given twice the last
 * counts, and -0 equals 0.
 */
export function meets(document: JsonObject, wanted: JsonObject): boolean {
  return Object.entries(wanted).every(([field, asked]) => {
    if (field === 'any_of') return (asked as (typeof wanted)[]).some((one) => meets(document, one));
    return holds(fieldOf(document, field), asked, Object.hasOwn(document, field));
  });
}

/** Whether a document meets a condition. Both are JSON texts. */
export function meetsText(document: string, wanted: string): boolean {
  return meets(JSON.parse(document) as Record<string, Json>, JSON.parse(wanted) as Record<string, Json>);
}

/** `isTop`: a nested field equals no array and no object. */
function holds(found: Json | undefined, asked: Json, isTop: boolean): boolean {
  const equals = (one: Json): boolean =>
    (isTop || typeof one !== 'object' || one === null) && same(found, one);
  if (asked === null || typeof asked !== 'object' || Array.isArray(asked)) return equals(asked);
  return Object.entries(asked as { readonly [operator: string]: Json }).every(([operator, given]) => {
    switch (operator) {
      case 'in':
        return (given as readonly Json[]).some(equals);
      case 'not':
        return !holds(found, given, isTop);
      case 'contains':
        return Array.isArray(found) && found.some((one) => same(one as Json, given));
      case 'contains_any':
        return (
          Array.isArray(found) && found.some((one) => (given as Json[]).some((any) => same(one as Json, any)))
        );
      case 'contains_all':
        return (
          Array.isArray(found) &&
          (given as Json[]).every((all) => found.some((one) => same(one as Json, all)))
        );
      case 'exists':
        return given === (found !== undefined);
      case 'starts_with': {
        const [text, start] = [found, given].map((one) =>
          typeof one === 'string' ? Array.from(one) : undefined,
        );
        return text !== undefined && start!.every((point, place) => text[place] === point);
      }
      case 'after':
      case 'before': {
        const [at, bound] = [found, given].map((one) => dateOf(JSON.stringify(one ?? null)));
        return at !== undefined && (operator === 'after' ? at > bound! : at < bound!);
      }
      default: {
        if (typeof found !== typeof given) return false;
        const order =
          typeof found === 'number'
            ? found - (given as number)
            : byCodePoints(found as string, given as string);
        return { gt: order > 0, gte: order >= 0, lt: order < 0, lte: order <= 0 }[operator]!;
      }
    }
  });
}

/** Nanoseconds since the epoch of a JSON token that is a date (test/index/terms/instant.test.ts). */
function dateOf(token: string): bigint | undefined {
  return token.startsWith('"') ? instantOf(JSON.parse(token) as string) : undefined;
}

function same(found: Json | undefined, asked: Json): boolean {
  if (found === undefined) return false;
  if (typeof found !== 'object' || typeof asked !== 'object' || found === null || asked === null)
    return found === asked;
  if (Array.isArray(found) !== Array.isArray(asked)) return false;
  const [one, other] = [Object.entries(found), Object.entries(asked)];
  return (
    one.length === other.length &&
    one.every(([key, item]) => Object.hasOwn(asked, key) && same(item, (asked as Record<string, Json>)[key]!))
  );
}

function byCodePoints(one: string, other: string): number {
  const [a, b] = [one, other].map((text) => Array.from(text, (point) => point.codePointAt(0)!));
  const at = a!.findIndex((point, place) => point !== b![place]);
  if (at === -1) return a!.length - b!.length;
  return (a![at] ?? -1) - (b![at] ?? -1);
}
