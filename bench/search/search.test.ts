/** The calculations behind the figures of the search benchmark. */
import { dequantised } from '../lib/vectors.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { rowsOf, tokenVectorsOf } from './corpus.ts';
import { EmbeddingWriter, openEmbeddings } from './embedding-directory.ts';
import { matches, selectivities } from './filters.ts';
import { recall } from './measure.ts';
import { synthesise } from './synthetic/synthetic.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-search-bench-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('synthetic embeddings', () => {
  const corpus = synthesise({ chunks: 300, meanRows: 20, queries: 3, seed: 5 });

  it('are the same whenever and in whatever pieces they are made', () => {
    const again = synthesise({ chunks: 300, meanRows: 20, queries: 3, seed: 5 });
    const whole = corpus.read(10, 13);
    const parts = [10, 11, 12].map((document) => again.read(document, document + 1));
    expect([...whole.vectors]).toEqual(parts.flatMap(({ vectors }) => [...vectors]));
    expect([...whole.scales]).toEqual(parts.flatMap(({ scales }) => [...scales]));
    expect(again.queries).toEqual(corpus.queries);
    const other = synthesise({ chunks: 300, meanRows: 20, queries: 3, seed: 6 });
    expect(other.read(0, 1).vectors).not.toEqual(corpus.read(0, 1).vectors);
  });

  it('have the mean length asked for and are unit vectors before centring', () => {
    expect(tokenVectorsOf(corpus) / 300).toBeGreaterThan(17);
    expect(tokenVectorsOf(corpus) / 300).toBeLessThan(23);
    const rows = dequantised(corpus.read(4, 5), corpus, corpus.centring);
    for (let at = 0; at < rows.length; at += corpus.dim) {
      expect(Math.hypot(...rows.subarray(at, at + corpus.dim))).toBeCloseTo(1, 1);
    }
  });
});

describe('token vectors', () => {
  it.each([
    [0x0000, 0],
    [0x0001, 2 ** -24],
    [0x3c00, 1],
    [0x3555, 0.333251953125],
    [0x7bff, 65504],
  ])('have scales of half bits: %i is %f', (bits, value) => {
    const stored = { vectors: Int8Array.of(1, -2), scales: Uint16Array.of(bits) };
    expect([...dequantised(stored, { dim: 2, rowBits: 8 }, Float32Array.of(0, 1))]).toEqual(
      [value, 1 - 2 * value].map(Math.fround),
    );
  });
});

describe('a directory of embeddings', () => {
  it('reads what was written, whole or its first documents', () => {
    const source = synthesise({ chunks: 40, meanRows: 10, queries: 2, seed: 3 });
    const written = new EmbeddingWriter(directory);
    const documents = source.documentChunks.length - 1;
    for (let document = 0; document < documents; document++) {
      const matrices = source.read(document, document + 1);
      const tokenIds = Uint32Array.from(matrices.scales, (_, row) => 100 * document + row);
      written.document(rowsOf(source, document), { ...matrices, tokenIds });
    }
    written.finish(source.queries, { centring: source.centring, readme: 'from a test\nmore' });
    const read = openEmbeddings(directory, undefined);
    expect(read.description).toBe('from a test');
    expect(read.documentChunks).toEqual(source.documentChunks);
    expect(read.chunkRows).toEqual(source.chunkRows);
    expect(read.queries).toEqual(source.queries);
    const { tokenIds, ...matrices } = read.read(2, 5);
    expect(matrices).toEqual(source.read(2, 5));
    expect(tokenIds).toHaveLength(matrices.scales.length);
    expect(tokenIds?.[0]).toBe(200);
    const some = openEmbeddings(directory, 10);
    expect(some.chunkRows.length - 1).toBeGreaterThanOrEqual(10);
    expect(some.read(0, 1)).toMatchObject(source.read(0, 1));
    expect(() => openEmbeddings(directory, 41)).toThrow('there are 40 chunks, not 41');
  });

  it('tells the bits of a component from the bytes of a row', () => {
    const folder = mkdtempSync(path.join(directory, 'few-bits-'));
    const written = new EmbeddingWriter(folder);
    const vectors = Int8Array.from({ length: 3 * 16 }, (_, at) => at);
    written.document([1, 2], { vectors, scales: new Uint16Array(3) });
    const queries = [{ rows: 2, vectors: new Float32Array(2 * 64) }];
    written.finish(queries, { centring: new Float32Array(64), readme: '' });
    const corpus = openEmbeddings(folder, undefined);
    expect(corpus).toMatchObject({ dim: 64, rowBits: 2 });
    expect(corpus.read(0, 1)).toEqual({ vectors, scales: new Uint16Array(3) });
  });
});

describe('figures', () => {
  it('count a filter value once in so many documents, and at least once', () => {
    for (const selectivity of selectivities) {
      const matching = Array.from({ length: 5_000 }, (_, document) => matches(document, 5_000, selectivity));
      expect(matching.filter(Boolean)).toHaveLength(Math.ceil(5_000 / selectivity));
    }
  });

  it('count recall among the first, and leave out queries that match nothing', () => {
    expect(recall([[1, 2, 3], [4]], [[3, 1, 9], []], 2)).toBe(0.25);
    expect(recall([[1], []], [[1], [7]], 10)).toBe(1);
  });
});
