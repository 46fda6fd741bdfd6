/** The calculations behind the figures of the encoder benchmark. */
import * as fc from 'fast-check';
import { InferenceSession } from 'onnxruntime-node';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { agreementOf } from '../lib/model/agreement.ts';
import { ratioOf } from './bench.ts';
import { cutTexts } from './mixes.ts';
import { packSequences } from './peer-process/packing.ts';
import { withSingleOutput } from './peer-process/single-output-graph.ts';
import { loadModel } from '../../src/encoder/model/served-model.ts';

const tinyGraph = path.resolve(import.meta.dirname, '../../test/fixtures/colbert-tiny/1/model.onnx');

describe('the ratio to contenders of one goal', () => {
  const row = (contender: string, mix: string, median: number) => ({
    contender,
    mix,
    ours_by_theirs: { median, minimum: median - 0.1, maximum: median + 0.1 },
    ours_by_theirs_per_cpu_second: null,
  });
  const goal = { contenders: ['ours_graph', 'export', 'absent'], mix: 'mixed', target: 2 };

  it('is the lowest, names it, and keeps the others', () => {
    const rows = [
      row('export', 'mixed', 3),
      row('ours_graph', 'mixed', 1.5),
      row('elsewhere', 'mixed', 1),
      row('export', 'long', 1.2),
    ];
    expect(ratioOf(goal, rows)).toMatchObject({
      value: 1.5,
      against: 'ours_graph',
      others: { export: { median: 3 } },
    });
  });

  it('is null where none of them ran that mix', () => {
    expect(ratioOf(goal, [row('export', 'long', 1.2)]).value).toBeNull();
  });
});

describe('the texts of a mix', () => {
  const long = 'x-'.repeat(12);

  it('leave out words that are longer than a text is to be', async () => {
    const model = await loadModel(path.dirname(tinyGraph));
    const texts = cutTexts(model, [`${long} a ${long}`, `${long} b`], [2, 9], 40);
    expect(texts).toHaveLength(40);
    for (const text of texts) {
      expect(text).toMatch(/^[ab]/);
      expect(model.tokenizer.encode(text).length).toBeLessThanOrEqual(9);
    }
    expect(() => cutTexts(model, [long], [2, 2], 1)).toThrow('no word of up to 2 tokens');
  });
});

describe('packed batches', () => {
  const sequences = fc.array(
    fc.integer({ min: 1, max: 40 }).map((length) => new Int32Array(length).fill(length)),
    { minLength: 1, maxLength: 60 },
  );

  it('hold every token, no padding, and no sequence longer than the longest', () => {
    fc.assert(
      fc.property(sequences, fc.integer({ min: 8, max: 200 }), (given, batchTokens) => {
        const batches = packSequences(given, batchTokens);
        const tokens = given.reduce((sum, { length }) => sum + length, 0);
        const longest = Math.max(...given.map(({ length }) => length));
        const stream = batches.flatMap(({ ids }) => [...ids]);
        expect(stream.slice(0, tokens)).toEqual(
          given.toSorted((a, b) => a.length - b.length).flatMap((sequence) => [...sequence]),
        );
        // The rest fills the last rectangle up.
        expect(stream.length - tokens).toBeLessThan(batches.at(-1)!.texts);
        for (const { ids, texts, length } of batches) {
          expect(ids).toHaveLength(texts * length);
          expect(length).toBeLessThanOrEqual(longest);
          expect(texts === 1 || texts * length <= batchTokens).toBe(true);
        }
      }),
    );
  });
});

describe('a graph cut to one output', () => {
  it('loads and gives that output under the other name', async () => {
    const graph = withSingleOutput(readFileSync(tinyGraph), 'output', 'last_hidden_state');
    const session = await InferenceSession.create(graph);
    expect(session.outputNames).toEqual(['last_hidden_state']);
  });

  it('is refused when the graph has no such output', () => {
    expect(() => withSingleOutput(readFileSync(tinyGraph), 'nothing', 'name')).toThrow('no output nothing');
  });
});

describe('agreement', () => {
  it('compares token vectors, leaves rows without direction out, and counts texts with other tokens', () => {
    const ours = [Float32Array.of(1, 0, 0, 0), Float32Array.of(0, 1)];
    const theirs = [Float32Array.of(2, 0, 1, 1), Float32Array.of(0, 1, 1, 0)];
    expect(agreementOf(ours, theirs, 2)).toEqual({
      texts: 2,
      token_vectors: 1,
      mean_cosine: 1,
      minimum_cosine: 1,
      texts_with_other_tokens: 1,
    });
  });
});
