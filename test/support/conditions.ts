/** Conditions on metadata for tests: any that a request may hold, and what each of them means. */
import * as fc from 'fast-check';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Numbers in several spellings, all of them doubles; strings beyond ASCII, beyond the BMP and beyond Unicode. */
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
const operators = fc
  .tuple(
    fc.oneof(boundOf(numbers), boundOf(strings)),
    fc.option(fc.array(value, { maxLength: 4 }), { freq: 3 }),
    fc.option(value, { freq: 3 }),
  )
  .map(([bounds, values, not]) => [
    ...bounds,
    ...(values === null ? [] : [`"in":[${values.join(',')}]`]),
    ...(not === null || not.startsWith('{') ? [] : [`"not":${not}`]),
  ])
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

/** What `where` means, of values as `JSON.parse` reads them: the last of a key given twice, -0 the same as 0. */
export function meets(
  document: { readonly [name: string]: Json },
  wanted: { readonly [name: string]: Json },
): boolean {
  return Object.entries(wanted).every(([field, asked]) => {
    if (field === 'any_of') return (asked as (typeof wanted)[]).some((one) => meets(document, one));
    return holds(document[field], asked);
  });
}

function holds(found: Json | undefined, asked: Json): boolean {
  if (asked === null || typeof asked !== 'object' || Array.isArray(asked)) return same(found, asked);
  return Object.entries(asked as { readonly [operator: string]: Json }).every(([operator, given]) => {
    switch (operator) {
      case 'in':
        return (given as readonly Json[]).some((one) => same(found, one));
      case 'not':
        return !holds(found, given);
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
