/** A list that is cut keeps the same tokens, whether its texts come whole or as short as the intake allows. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { cutTokens, type TokenCut } from '../../../src/encoder/protocol/token-cut.ts';
import { DocumentIntake } from '../../../src/encoder/scheduling/document-intake.ts';
import { tinyModel } from '../../support/encoder/models.ts';

const model = await loadModel(tinyModel);
const chunking = { maxTokens: 20, overlapTokens: 0, minimumChunkTokens: 1 };

/** Takes texts of so many tokens, each as short as it may be. */
function taken(wholeTokens: readonly number[], cut: TokenCut) {
  const intake = new DocumentIntake(model, { chunking, cut }, () => undefined);
  let read = 0;
  for (const whole of wholeTokens) {
    const tokens = Math.min(whole, intake.tokensMaxOfNext + 1);
    read += tokens;
    intake.take({ ids: new Int32Array(tokens), tokenizeMs: 0 });
  }
  intake.finish();
  return { read, kept: intake.documents.map(({ ids }) => ids.length), counts: [...intake.wholeCounts!] };
}

it('keeps the same tokens of texts whose ends nobody looked at', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(60), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 50 }),
      fc.nat(200),
      (wholeTokens, documentTokensMax, more) => {
        const cut = { documentTokensMax, tokensMax: wholeTokens.length + more };
        const { kept, counts } = taken(wholeTokens, cut);
        expect(kept).toEqual(cutTokens(wholeTokens, cut));
        for (const [at, whole] of wholeTokens.entries())
          expect(counts[at]! > kept[at]!).toBe(whole > kept[at]!);
      },
    ),
    { numRuns: 1000 },
  );
});

it('asks for fewer tokens of each text the more texts have come', () => {
  const { read } = taken(Array(1000).fill(1250), { documentTokensMax: 4096, tokensMax: 100_000 });
  expect(read).toBeLessThan(400_000);
});
