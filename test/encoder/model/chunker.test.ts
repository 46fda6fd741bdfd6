import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkingProblem, tokenWindows, windowedText } from '../../../src/encoder/model/chunker.ts';

const windows = (tokens: number, max: number, overlap: number, minimum: number, limit = 510) =>
  [
    ...tokenWindows(tokens, { maxTokens: max, overlapTokens: overlap, minimumChunkTokens: minimum }, limit),
  ].map(({ start, end }) => [start, end]);

const parameters = fc
  .record({ maxTokens: fc.integer({ min: 1, max: 64 }), room: fc.integer({ min: 0, max: 70 }) })
  .chain(({ maxTokens, room }) =>
    fc.record({
      maxTokens: fc.constant(maxTokens),
      overlapTokens: fc.integer({ min: 0, max: maxTokens - 1 }),
      minimumChunkTokens: fc.integer({ min: 0, max: maxTokens }),
      limit: fc.constant(maxTokens + room),
      tokens: fc.integer({ min: 0, max: 600 }),
    }),
  );

describe('token windows', () => {
  it('give no window for no tokens and one for one token', () => {
    expect(windows(0, 256, 32, 16)).toEqual([]);
    expect(windows(1, 256, 32, 16)).toEqual([[0, 1]]);
  });

  it('advance by the window less the overlap', () => {
    expect(windows(600, 256, 32, 16)).toEqual([
      [0, 256],
      [224, 480],
      [448, 600],
    ]);
  });

  it('join a remainder below the minimum to the window before it', () => {
    expect(windows(256 + 15, 256, 32, 16)).toEqual([[0, 271]]);
    expect(windows(256 + 16, 256, 32, 16)).toEqual([
      [0, 256],
      [224, 272],
    ]);
  });

  it('reach back instead where the positions do not allow a longer window', () => {
    expect(windows(510 + 15, 510, 32, 16)).toEqual([
      [0, 510],
      [15, 525],
    ]);
  });

  it('cover every token, in order, within the bounds, for all parameters', () => {
    fc.assert(
      fc.property(parameters, ({ tokens, limit, ...chunking }) => {
        const found = [...tokenWindows(tokens, chunking, limit)];
        expect(found.length > 0).toBe(tokens > 0);
        let covered = 0;
        for (const [i, { start, end }] of found.entries()) {
          expect(start).toBeLessThanOrEqual(covered);
          expect(end).toBeGreaterThan(covered);
          expect(end - start).toBeLessThanOrEqual(limit);
          expect(end - start).toBeLessThan(chunking.maxTokens + Math.max(1, chunking.minimumChunkTokens));
          const previous = found[i - 1];
          if (previous !== undefined) {
            expect(start).toBeGreaterThan(previous.start);
            const isLast = i === found.length - 1;
            const overlap = previous.end - start;
            if (isLast) expect(overlap).toBeGreaterThanOrEqual(chunking.overlapTokens);
            else expect(overlap).toBe(chunking.overlapTokens);
          }
          covered = end;
        }
        expect(covered).toBe(tokens);
        const held = found.reduce((sum, { start, end }) => sum + end - start, 0);
        const { windows: count, tokens: estimate } = windowedText(tokens, chunking);
        expect(Math.abs(count - found.length)).toBeLessThanOrEqual(chunking.minimumChunkTokens);
        expect(held - estimate).toBeLessThan(chunking.maxTokens);
        expect(estimate - held).toBeLessThanOrEqual(chunking.maxTokens * chunking.minimumChunkTokens);
      }),
    );
  });
});

describe('chunking parameters', () => {
  it.each([
    [{ maxTokens: 0, overlapTokens: 0, minimumChunkTokens: 0 }, 'max_tokens'],
    [{ maxTokens: 511, overlapTokens: 0, minimumChunkTokens: 0 }, 'max_tokens'],
    [{ maxTokens: 1.5, overlapTokens: 0, minimumChunkTokens: 0 }, 'max_tokens'],
    [{ maxTokens: 8, overlapTokens: 8, minimumChunkTokens: 0 }, 'overlap_tokens'],
    [{ maxTokens: 8, overlapTokens: -1, minimumChunkTokens: 0 }, 'overlap_tokens'],
    [{ maxTokens: 8, overlapTokens: 0, minimumChunkTokens: 9 }, 'minimum_chunk_tokens'],
  ])('outside the bounds are named: %j', (chunking, name) => {
    expect(chunkingProblem(chunking, 510)).toContain(name);
  });

  it('at the bounds are fine', () => {
    expect(
      chunkingProblem({ maxTokens: 510, overlapTokens: 509, minimumChunkTokens: 510 }, 510),
    ).toBeUndefined();
    expect(chunkingProblem({ maxTokens: 1, overlapTokens: 0, minimumChunkTokens: 0 }, 510)).toBeUndefined();
  });
});
