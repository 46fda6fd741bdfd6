/** The shapes of batches on a GPU: few, large enough, and no larger than the budget. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseEncoderArguments } from '../../../src/encoder/server/arguments.ts';
import { paddedLengths, paddedTextCounts, paddedTexts } from '../../../src/encoder/scheduling/batch-shape.ts';
import { EncoderCore, type InferencePool } from '../../../src/encoder/scheduling/encoder-core.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { tuning } from '../../../src/encoder/server/tuning.ts';
import { warmUp } from '../../../src/encoder/server/warm-up.ts';
import { tinyModel } from '../../support/encoder/models.ts';
import { sessionsOfTest } from '../../support/encoder/sessions.ts';

describe('the number of texts in a padded batch', () => {
  it('is the next power of two, or the number that fills the budget', () => {
    expect([1, 2, 3, 5, 33, 59, 60].map((texts) => paddedTexts(texts, 272, 16_384))).toEqual([
      1, 2, 4, 8, 60, 60, 60,
    ]);
  });

  it('holds every text, and grows a batch neither past the budget nor past twice its texts', () => {
    const positive = fc.integer({ min: 1, max: 600 });
    fc.assert(
      fc.property(positive, positive, fc.integer({ min: 64, max: 65_536 }), (texts, length, budget) => {
        const padded = paddedTexts(texts, length, budget);
        expect(padded).toBeGreaterThanOrEqual(texts);
        expect(padded).toBeLessThan(2 * texts);
        if (padded > texts) expect(padded * length).toBeLessThanOrEqual(budget);
      }),
    );
  });

  it('takes few values: at most one for each doubling, and the full batch', () => {
    const counts = new Set(Array.from({ length: 60 }, (_, i) => paddedTexts(i + 1, 272, 16_384)));
    expect([...counts]).toEqual([1, 2, 4, 8, 16, 32, 60]);
    expect(paddedTextCounts(272, 16_384)).toEqual([...counts]);
    expect(paddedTextCounts(256, 16_384)).toEqual([1, 2, 4, 8, 16, 32, 64]);
    expect(paddedTextCounts(512, 256)).toEqual([1]);
  });
});

describe('the padded lengths', () => {
  it('are the multiples of the step up to the first that holds every position', () => {
    expect(paddedLengths(16, 40)).toEqual([16, 32, 48]);
    expect(paddedLengths(16, 512)).toHaveLength(32);
  });
});

describe('a batch with texts that are padding', () => {
  it('gives the rows of its own texts alone, unchanged', async () => {
    const pool = await sessionsOfTest(await loadModel(tinyModel));
    const run = async (paddedTextCount: number, paddedLength: number) => {
      const { output } = await pool.run({
        kind: 'document',
        modelIndex: 0,
        ids: Int32Array.of(2, 10, 11, 12, 3, 2, 13, 3),
        lengths: Uint32Array.of(5, 3),
        attended: Uint32Array.of(5, 3),
        kept: undefined,
        rows: 8,
        paddedLength,
        paddedTexts: paddedTextCount,
      });
      return output;
    };
    const exact = await run(2, 5);
    expect(await run(8, 16)).toEqual(exact);
  });
});

describe('the warm-up of a GPU', () => {
  it('runs every padded length, in batches of few shapes', async () => {
    const model = await loadModel(tinyModel);
    const pool = await sessionsOfTest(model);
    const shapes = new Set<string>();
    const watched: InferencePool = {
      workers: 1,
      roomFor: (kind) => pool.roomFor(kind),
      run: async (batch) => {
        if (batch.kind === 'document') shapes.add(`${batch.paddedTexts} x ${batch.paddedLength}`);
        return pool.run(batch);
      },
    };
    const given = parseEncoderArguments(['--listen', 'unix:/x', '--model-dir', 'x', '--batch-tokens', '128']);
    const limits = tuning(given, 'cuda');
    await warmUp(new EncoderCore([model], watched, limits), 'cuda', limits);
    const lengths = new Set([...shapes].map((shape) => Number(shape.split(' x ')[1])));
    expect([...lengths].toSorted((a, b) => a - b)).toEqual(
      paddedLengths(limits.lengthStep, model.rules.documentPositionsMax),
    );
    for (const shape of shapes) {
      const [texts = 0, length = 0] = shape.split(' x ').map(Number);
      expect([1, 2, 4, 8, Math.floor(128 / length)]).toContain(texts);
    }
  });
});
