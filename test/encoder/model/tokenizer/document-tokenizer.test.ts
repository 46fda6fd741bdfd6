/** Documents that another thread tokenises. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadModel } from '../../../../src/encoder/model/served-model.ts';
import {
  documentTokenizer,
  startDocumentTokenizer,
} from '../../../../src/encoder/model/tokenizer/document-tokenizer.ts';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { defaultModel, tinyModel } from '../../../support/encoder/models.ts';
import { charsmapOf } from '../../../support/encoder/unigram.ts';

const never = new AbortController().signal;

async function stage() {
  const models = [await loadModel(defaultModel), await loadModel(tinyModel)];
  const fatal: string[] = [];
  const there = await startDocumentTokenizer(models, (reason) => fatal.push(reason));
  return { here: documentTokenizer(models), there, fatal };
}

/** An export with XLM-R's vocabulary form, to which the table of characters is added. */
async function exportWithTable(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'unigram-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const fixtures = path.resolve(import.meta.dirname, '../../../fixtures/exports/multi-vector');
  await cp(path.join(fixtures, 'xlm-roberta-unexpanded'), directory, { recursive: true });
  const file = path.join(directory, 'tokenizer.json');
  const json = JSON.parse(await readFile(file, 'utf8')) as { normalizer: { normalizers: unknown[] } };
  json.normalizer.normalizers[0] = {
    type: 'Precompiled',
    precompiled_charsmap: charsmapOf({ '\n': ' ', '①': '1' }),
  };
  await writeFile(file, JSON.stringify(json));
  return directory;
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

  it('shares the vocabulary of a Unigram tokenizer', async () => {
    const models = [await loadModel(await exportWithTable())];
    const { packed, vocab } = models[0]!.tokenizerOptions.tokenizer['model'] as {
      readonly packed: { readonly pieces: { readonly nodes: Int32Array } };
      readonly vocab: readonly unknown[];
    };
    expect(packed.pieces.nodes.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(vocab).toEqual([]);
    const there = await startDocumentTokenizer(models, (reason) => expect.fail(reason));
    const here = documentTokenizer(models);
    for (const text of ['', 'late interaction\n①', 'a <s> 😀'.repeat(3000)]) {
      const found = await there(0, text, never);
      const expected = await here(0, text, never);
      expect(found.ids).toEqual(expected.ids);
      expect(found.places).toEqual(expected.places);
      expect(found.places).toBeDefined();
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
