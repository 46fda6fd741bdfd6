/** Texts of dates are read as what people mean. `test/index/where.test.ts` compares the engine with the same texts. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { instantBounds, instantOf } from '../../../src/index/terms/instant.ts';
import { rounds } from '../../rounds.ts';
import { writtenDates } from './dates.ts';

describe('a date', () => {
  it('is read in every form that it is written in, and nothing else is a date', () => {
    fc.assert(
      fc.property(writtenDates, ({ text, instant }) => {
        expect([text, instantOf(text)]).toEqual([text, instant]);
        if (instant === undefined) return;
        expect(instant >= instantBounds[0] && instant <= instantBounds[1]).toBe(true);
      }),
      { numRuns: rounds({ short: 5_000, nightly: 500_000 }) },
    );
  });

  it.each([
    ['2026-11-27 09:30:00+00:00', '2026-11-27T09:30:00Z'],
    ['2026-11-27 09:30:00.123456+01:00', '2026-11-27T08:30:00.123456Z'],
    ['2026-11-27 09:30:00,123', '2026-11-27T09:30:00.123Z'],
    ['2026-11-27T09:30', '2026-11-27T09:30:00Z'],
    ['2026-11-27 09:30:00 +0530', '2026-11-27T04:00:00Z'],
    ['2026-11-27 09:30:00+00', '2026-11-27T09:30:00Z'],
    ['2026-11-27 09:30:00 UTC', '2026-11-27T09:30:00Z'],
    ['2026-11-27t09:30:00z', '2026-11-27T09:30:00Z'],
  ])('%s is %s', (written, instant) => {
    expect(instantOf(instant)).toBeTypeOf('bigint');
    expect(instantOf(written)).toBe(instantOf(instant));
  });
});
