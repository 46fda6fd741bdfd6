/** A ColBERT directory in the layout of PyLate / next-plaid exports. A real encoder serves it, and its rows follow the paper's rules. */
import * as fc from 'fast-check';
import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EncodedDocument } from '../../../src/encoder/protocol/contract.ts';
import { halfValues } from '../../../src/encoder/inference/halves.ts';
import { openModelDirectory } from '../../../src/encoder/model/model-directory.ts';
import { ModelDirectoryError } from '../../../src/encoder/model/model-directory-error.ts';
import { documentRows, pieces, quantised, queryRows } from '../../support/encoder/colbert-reference.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import {
  callOptions,
  encodeAll,
  type Encoders,
  encodersOfTest,
  startEncoders,
} from '../../support/encoder/encoders.ts';
import { tinyModel } from '../../support/encoder/models.ts';

const words = [
  'the',
  'late',
  'interaction',
  'token',
  'vectors',
  'xyz',
  'mask',
  '42',
  '.',
  ',',
  '[',
  'MASK',
  ']',
  'unused0',
];
const text = fc
  .array(fc.constantFrom(...words), { minLength: 0, maxLength: 60 })
  .map((parts) => parts.join(' '));
const chunking = { maxTokens: 8, overlapTokens: 2, minimumChunkTokens: 3 };

/** Windows of the text, computed by the rules of the README and not by the chunker. */
function windowsOf(tokens: readonly string[]): string[][] {
  const { maxTokens, overlapTokens, minimumChunkTokens } = chunking;
  const windows: string[][] = [];
  for (let start = 0; ; start += maxTokens - overlapTokens) {
    const rest = tokens.length - start - maxTokens;
    windows.push(tokens.slice(start, rest < minimumChunkTokens ? undefined : start + maxTokens));
    if (rest < minimumChunkTokens) return windows;
  }
}

/** Rows of each chunk as f64 values, with the error that int8 allows. */
function expectChunks(document: EncodedDocument, expected: number[][][]): void {
  expect([...document.chunkRows]).toEqual(expected.map((rows) => rows.length));
  const scales = halfValues(document.scales);
  for (const [r, row] of expected.flat().entries()) {
    const { values, scale } = quantised(row);
    expect(Math.abs(scales[r]! - scale)).toBeLessThanOrEqual(scale * 1e-3);
    for (const [d, value] of values.entries()) {
      expect(Math.abs(document.vectors[r * values.length + d]! - value)).toBeLessThanOrEqual(0.501);
    }
  }
}

describe('a ColBERT directory', () => {
  let encoders: Encoders;
  beforeAll(async () => {
    encoders = await startEncoders();
  });
  afterAll(async () => encoders.close());

  it('is served under the names of its path', () => {
    expect(encoders.pool.models()).toEqual([
      { name: 'colbert-tiny', version: '1', dim: 16, rowBits: 8, poolFactor: 1, windowTokensMax: 21 },
    ]);
  });

  it('encodes queries by the paper’s rules: prefix, expansion, unattended masks, truncation', async () => {
    await fc.assert(
      fc.asyncProperty(text, async (query) => {
        const encoded = await encoders.pool.encodeQuery(query, callOptions(encoders.pool));
        const expected = queryRows(query);
        expect(encoded.rows).toBe(expected.length);
        expect(encoded.inputTokens).toBe(pieces(query).length);
        expect(encoded.offsets).toEqual(new Float32Array(encoded.rows));
        for (const [i, value] of expected.flat().entries()) expect(encoded.vectors[i]).toBeCloseTo(value, 4);
      }),
      { numRuns: 50 },
    );
  });

  it('encodes documents by the paper’s rules: windows, prefix, skip-list, kept special tokens', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 8 }), async (texts) => {
        const documents = await encodeAll(encoders.pool, texts, { chunking });
        expect(documents.map(({ documentIndex }) => documentIndex)).toEqual(texts.map((_, i) => i));
        for (const [i, document] of documents.entries()) {
          const tokens = pieces(texts[i]!);
          expect(document.inputTokens).toBe(tokens.length);
          expectChunks(
            document,
            tokens.length === 0 ? [] : windowsOf(tokens).map((window) => documentRows(window)),
          );
        }
      }),
      { numRuns: 30 },
    );
  });

  it('keeps the rows of CLS, the prefix and SEP of a document of punctuation alone', async () => {
    const [document] = await encodeAll(encoders.pool, ['. , !']);
    expect([...document!.chunkRows]).toEqual([3]);
  });

  it('gives a text the same rows in any batch', async () => {
    const probe = 'late interaction of token vectors in every document';
    const [alone] = await encodeAll(encoders.pool, [probe]);
    const company = Array.from({ length: 40 }, (_, i) => 'the query mask '.repeat(1 + (i % 7)));
    const together = await encodeAll(encoders.pool, [...company, probe, ...company]);
    expect(together[40]!.vectors).toEqual(alone!.vectors);
  });
});

describe('keys of onnx_config.json', () => {
  async function variant(changes: Record<string, unknown>): Promise<string> {
    const model = path.join(await newDirectory(), 'variant', '2');
    await cp(tinyModel, model, { recursive: true });
    const file = path.join(model, 'onnx_config.json');
    const config = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
    await writeFile(file, JSON.stringify({ ...config, ...changes }));
    return model;
  }

  it('attend_to_expansion_tokens lets the masks into the context', async () => {
    const model = await variant({ attend_to_expansion_tokens: true });
    const { pool } = await encodersOfTest({ modelDirectories: [tinyModel, model] });
    const plain = await pool.encodeQuery(
      'the late',
      callOptions(pool, { model: { name: 'colbert-tiny', version: '1' } }),
    );
    const attending = await pool.encodeQuery(
      'the late',
      callOptions(pool, { model: { name: 'variant', version: '2' } }),
    );
    expect(attending.rows).toBe(plain.rows);
    expect(attending.vectors).not.toEqual(plain.vectors);
  });

  it('without expansion a query has the rows of its tokens alone', async () => {
    const model = await variant({ do_query_expansion: false, mask_token_id: null });
    const { pool } = await encodersOfTest({ modelDirectories: [model] });
    expect((await pool.encodeQuery('the late', callOptions(pool))).rows).toBe(5);
  });

  it('centring moves documents, and the offsets of queries give the scores back', async () => {
    const mean = Array.from({ length: 16 }, (_, d) => 0.1 * Math.cos(d));
    const model = await variant({ maxsimd: { centring: mean } });
    const { pool } = await encodersOfTest({ modelDirectories: [tinyModel, model] });
    const centredCall = callOptions(pool, { model: { name: 'variant', version: '2' } });
    const query = await pool.encodeQuery('token vectors', centredCall);
    const document = 'the late interaction of token vectors';
    const [plain] = await encodeAll(pool, [document], { model: { name: 'colbert-tiny', version: '1' } });
    const [centred] = await encodeAll(pool, [document], { model: { name: 'variant', version: '2' } });
    expect(centred!.vectors).not.toEqual(plain!.vectors);
    const similarity = (q: number, d: EncodedDocument, row: number): number => {
      let sum = 0;
      for (let i = 0; i < 16; i++) sum += query.vectors[q * 16 + i]! * d.vectors[row * 16 + i]!;
      return sum * halfValues(d.scales)[row]!;
    };
    for (let q = 0; q < query.rows; q++) {
      for (let row = 0; row < centred!.scales.length; row++) {
        const back = similarity(q, centred!, row) + query.offsets[q]!;
        expect(Math.abs(back - similarity(q, plain!, row))).toBeLessThan(0.02);
      }
    }
  });

  it.each([
    [{ embedding_dim: 'wide' }, /embedding_dim/],
    [{ mask_token_id: null }, /mask_token_id/],
    [{ document_length: 3 }, /no room/],
    [{ maxsimd: { centring: [1, 2] } }, /centring/],
    [{ maxsimd: { int8_output: 'document_int8' } }, /scale_output/],
  ])('a wrong one is a start-up error that names it: %j', async (changes, message) => {
    const model = await variant(changes);
    await expect(encodersOfTest({ modelDirectories: [model] })).rejects.toThrow(message);
  });

  it('a file that differs from its manifest is a start-up error', async () => {
    const model = await variant({});
    const manifest = { files: { 'model.onnx': { sha256: '0'.repeat(64) } } };
    await writeFile(path.join(model, 'manifest.json'), JSON.stringify(manifest));
    await expect(encodersOfTest({ modelDirectories: [model] })).rejects.toThrow(/model\.onnx has sha256/);
  });

  it.each(['', '..', 'absent.bin', 'model.onnx/inside', 'a\0b', 'x'.repeat(300)])(
    'a manifest that names what is no file is an error of the model directory: %j',
    async (name) => {
      const model = await variant({});
      const manifest = { files: { [name]: '0'.repeat(64) } };
      await writeFile(path.join(model, 'manifest.json'), JSON.stringify(manifest));
      await expect(openModelDirectory(model)).rejects.toThrow(ModelDirectoryError);
    },
  );

  it('golden rows that the model does not give are a start-up error', async () => {
    const model = await variant({});
    const wrong = {
      text: 'the',
      kind: 'document',
      input_ids: [2, 6, 7, 3],
      rows: [{ row: 2, values: [9] }],
      tolerance: 0.01,
    };
    await writeFile(path.join(model, 'manifest.json'), JSON.stringify({ golden: [wrong] }));
    await expect(encodersOfTest({ modelDirectories: [model] })).rejects.toThrow(/golden/);
  });

  it('an explicit cuda that cannot load is a start-up error', async () => {
    await expect(encodersOfTest({ provider: 'cuda' })).rejects.toThrow(/cuda/i);
  });

  it('auto falls back to the CPU and logs it', async () => {
    const { logs } = await encodersOfTest({ provider: 'auto', logLevel: 'debug' });
    expect(logs.join('\n')).toContain('CUDA did not load; using the CPU');
  });
});
