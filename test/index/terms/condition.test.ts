/** Conditions that every document meets are recognised, because a deletion by one is refused. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conditionDepthMax, conditionOf, conditionValuesMax } from '../../../src/index/terms/condition.ts';
import { rounds } from '../../rounds.ts';
import { conditions, meets, metadata, name, type Json } from '../../support/conditions.ts';

type Fields = { readonly [name: string]: Json };

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
function whereOf(others: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> {
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

const parsed = (text: string): Fields => JSON.parse(text) as Fields;
/** The steps of `{"any_of":[]}`, which no record meets. */
const none = Buffer.from([4, 0, 0]);

describe('a condition', () => {
  it('of constants is decided, however deep it is nested', () => {
    fc.assert(
      fc.property(whereOf([]), (text) => {
        const steps = conditionOf(text, 'where');
        expect(steps).toEqual(meets({}, parsed(text)) ? undefined : none);
      }),
      { numRuns: rounds({ short: 2_000, nightly: 100_000 }) },
    );
  });

  it('that is decided holds for every document, or for none', () => {
    let decided = 0;
    fc.assert(
      fc.property(
        whereOf([conditions]),
        fc.array(metadata, { minLength: 1, maxLength: 5 }),
        (text, documents) => {
          const steps = conditionOf(text, 'where');
          if (steps !== undefined && !none.equals(steps)) return;
          decided += 1;
          for (const document of documents)
            expect(meets(parsed(document), parsed(text))).toBe(steps === undefined);
        },
      ),
      { numRuns: rounds({ short: 2_000, nightly: 100_000 }) },
    );
    expect(decided).toBeGreaterThan(100);
  });

  it.each([
    '{}',
    '{"any_of":[{}]}',
    '{"any_of":[{"x":1},{}]}',
    '{"any_of":[{"any_of":[{"any_of":[{}]}]}]}',
    '{"x":{"not":{"in":[]}}}',
    '{"x":{"not":{"in":[],"gt":3}}}',
    '{"x":{"not":{"not":{"not":{"in":[]}}}},"any_of":[{},{"y":2}]}',
    '{"x":{"not":{"in":[],"not":1}}}',
    '{"x":{"not":{"contains_any":[]}}}',
    '{"x":{"not":{"after":"2026-01-01","before":"2026-01-01T00:00:00.000000001Z"}}}',
    '{"x":{"not":{"after":"9999-12-31T23:59:59.999999999-23:59"}}}',
    '{"x":{"not":{"before":"0000-01-01T00:00:00+23:59"}}}',
    '{"any_of":[{"x":{"exists":true}},{"x":{"exists":false}}]}',
    '{"any_of":[{"x":{"exists":true}},{"y":2},{"x":{"not":{"contains":1}}}]}',
    '{"x":{"not":{"exists":false,"in":[1]}}}',
  ])('%s holds for every document', (text) => {
    expect(conditionOf(text, 'where')).toBeUndefined();
  });

  it.each([
    '{"x":{"not":{"in":[1],"not":{"in":[]}}}}',
    '{"x":{"gte":""}}',
    '{"x":{"exists":true}}',
    '{"any_of":[{"x":{"exists":true}},{"y":{"exists":false}}]}',
    '{"any_of":[{"x":{"exists":false}},{"x":{"contains":1}}]}',
    '{"any_of":[{"x":1},{"x":{"not":1}}]}',
  ])('%s is for the documents to decide', (text) => {
    expect(conditionOf(text, 'where')?.length).toBeGreaterThan(3);
  });

  const many = (count: number, text: string): string => Array<string>(count).fill(text).join(',');
  it.each([
    ['objects without fields', `{"x":1,"any_of":[{"any_of":[${many(1_000, '{}')}]},{"y":2}]}`],
    ['any_of without objects', `{"any_of":[{"x":1},${many(1_000, '{"any_of":[]}')}]}`],
    ['not in not', `{"x":${'{"not":'.repeat(400)}{"in":[1]}${'}'.repeat(400)}}`],
  ])('costs the engine by the values that it compares: %s cost nothing', (_name, text) => {
    const oneOf = (terms: number): number => 3 + terms * 16;
    expect(conditionOf(text, 'where')?.length).toBeLessThanOrEqual(2 * oneOf(1) + 3);
  });

  it('of as many values as there may be has a step for each, to compare, to flip and to join', () => {
    const objects = Array.from({ length: conditionValuesMax }, (_, n) => `{"v":{"not":${n}}}`);
    const steps = conditionOf(`{"any_of":[${objects.join(',')}]}`, 'where');
    expect(steps).toHaveLength(conditionValuesMax * (3 + 16 + 1) + (conditionValuesMax - 1) * 3);
  });
});
