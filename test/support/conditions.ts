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
export const name = fc.constantFrom(...names);
export const metadata = fc
  .array(fc.tuple(name, value), { maxLength: 4 })
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

/**
 * Whether a document meets a condition `where`. Values are as `JSON.parse` reads them: of a key that is given twice the last
 * counts, and -0 equals 0.
 */
export function meets(
  document: { readonly [name: string]: Json },
  wanted: { readonly [name: string]: Json },
): boolean {
  return Object.entries(wanted).every(([field, asked]) => {
    if (field === 'any_of') return (asked as (typeof wanted)[]).some((one) => meets(document, one));
    return holds(document[field], asked);
  });
}

/** Whether a document meets a condition. Both are JSON texts. */
export function meetsText(document: string, wanted: string): boolean {
  return meets(JSON.parse(document) as Record<string, Json>, JSON.parse(wanted) as Record<string, Json>);
}

function holds(found: Json | undefined, asked: Json): boolean {
  if (asked === null || typeof asked !== 'object' || Array.isArray(asked)) return same(found, asked);
  return Object.entries(asked as { readonly [operator: string]: Json }).every(([operator, given]) => {
    switch (operator) {
      case 'in':
        return (given as readonly Json[]).some((one) => same(found, one));
      case 'not':
        return !holds(found, given);
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
