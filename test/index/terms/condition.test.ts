/** Conditions are simplified, and cost the engine by the values that they compare. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conditionOf, conditionValuesMax } from '../../../src/index/terms/condition.ts';
import { rounds } from '../../rounds.ts';
import { meets, whereOf, type Json } from '../../support/conditions.ts';

type Fields = { readonly [name: string]: Json };

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
