/** Defaults, bounds and orders that are decided by plain functions. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { monthBounds, monthOf, secondsToNextMonth } from '../../../src/service/calendar-month.ts';
import { chunkingOf } from '../../../src/service/operations/create-index.ts';

describe('the chunking of an index', () => {
  const model = { windowTokensMax: 510 };

  it('is 256 / 32 / 16 by default', () => {
    expect(chunkingOf(model)).toEqual({ maxTokens: 256, overlapTokens: 32, minimumChunkTokens: 16 });
  });

  it('shrinks with a model of short windows', () => {
    expect(chunkingOf({ windowTokensMax: 64 })).toEqual({
      maxTokens: 64,
      overlapTokens: 8,
      minimumChunkTokens: 16,
    });
  });

  it('has defaults that fit any window asked for', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 510 }), (maxTokens) => {
        const chunking = chunkingOf(model, { maxTokens });
        expect(chunking.overlapTokens).toBeLessThanOrEqual(maxTokens / 2);
        expect(chunking.minimumChunkTokens).toBeLessThanOrEqual(maxTokens);
      }),
    );
  });
});

describe('the usage period', () => {
  it('is the UTC calendar month', () => {
    const now = Date.UTC(2026, 1, 28, 23, 59, 59, 1);
    expect(monthOf(now)).toBe('2026-02');
    expect(monthBounds(now)).toEqual({ startMs: Date.UTC(2026, 1, 1), endMs: Date.UTC(2026, 2, 1) });
    expect(secondsToNextMonth(now)).toBe(1);
    expect(secondsToNextMonth(Date.UTC(2026, 11, 31))).toBe(86_400);
    expect(monthOf(Date.UTC(2027, 0, 1))).toBe('2027-01');
  });
});
