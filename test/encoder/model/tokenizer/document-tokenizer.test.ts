/** Documents that another thread tokenises. */
import { describe, expect, it } from 'vitest';
import { loadModel } from '../../../../src/encoder/model/served-model.ts';
import {
  documentTokenizer,
  startDocumentTokenizer,
} from '../../../../src/encoder/model/tokenizer/document-tokenizer.ts';
import { defaultModel, tinyModel } from '../../../support/encoder/models.ts';

const never = new AbortController().signal;

async function stage() {
  const models = [await loadModel(defaultModel), await loadModel(tinyModel)];
  const fatal: string[] = [];
  const there = await startDocumentTokenizer(models, (reason) => fatal.push(reason));
  return { here: documentTokenizer(models), there, fatal };
}

describe('the thread that tokenises documents', () => {
  it('gives the tokens and places that this thread gives', async () => {
    const { here, there } = await stage();
    const texts = ['', 'late interaction', 'naïve\u0301 \ud83d\ude00 Σς\tαβ, x\u0301y', 'word '.repeat(5000)];
    for (const model of [0, 1]) {
      const found = await Promise.all(texts.map(async (text) => there(model, text, never)));
      for (const [i, { ids, places }] of found.entries()) {
        const expected = await here(model, texts[i]!, never);
        expect(ids).toEqual(expected.ids);
        expect(places).toEqual(expected.places);
      }
    }
  });

  it('leaves a document whose caller has gone, and goes on with others', async () => {
    const { there, fatal } = await stage();
    const controller = new AbortController();
    const gone = there(0, 'marks\u0301 '.repeat(500_000), controller.signal);
    const other = there(0, 'late interaction', never);
    controller.abort(new Error('the caller has gone'));
    await expect(gone).rejects.toThrow('the caller has gone');
    expect((await other).ids).toHaveLength(2);
    await expect(there(0, 'a', controller.signal)).rejects.toThrow('the caller has gone');
    expect(fatal).toEqual([]);
  });
});
