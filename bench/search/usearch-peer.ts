/**
 * A graph over all token vectors, as ColBERT's first version searched (arXiv 2004.12832): the nearest tokens of every
 * query token name chunks, and all of these are scored exactly, here by our own kernel over copies of their vectors.
 * USearch holds unit vectors (the centring mean added again, so that nearness ranks as MaxSim does) as bf16; its search
 * expands as far as it returns, so the number of tokens asked for is all there is to set.
 */
import { dequantised } from '../lib/vectors.ts';
import { createRequire } from 'node:module';
import { statSync } from 'node:fs';
import path from 'node:path';
import type { NativeEngine } from '../../src/index/engine/native.ts';
import {
  documentOfChunks,
  documentsOf,
  rowsOfChunk,
  runsOf,
  tokenVectorsOf,
  type Corpus,
  type Query,
} from './corpus.ts';
import type { Ranking } from './measure.ts';
import { builtOnce, type OperatingPoint, type Peer, type PeerOptions } from './peer.ts';

interface TokenGraph {
  add(keys: BigUint64Array, vectors: Float32Array, threads: number): void;
  search(vectors: Float32Array, count: number, threads: number): { readonly keys: BigUint64Array };
  save(file: string): void;
  load(file: string): void;
}
interface UsearchModule {
  readonly Index: new (options: object) => TokenGraph;
}

const tokensPerQueryToken = [10, 50, 200, 500] as const;
const batchRows = 50_000;
const expansionAdd = 128;

export function openUsearch(engine: NativeEngine): Peer {
  const load = createRequire(import.meta.url);
  const usearch = load('usearch') as UsearchModule;
  return {
    name: 'usearch',
    operatingPoints: (options) => operatingPoints(usearch, engine, options),
  };
}

async function* operatingPoints(
  usearch: UsearchModule,
  engine: NativeEngine,
  options: PeerOptions,
): AsyncGenerator<OperatingPoint> {
  const { corpus, threads, directory, topK, onProgress } = options;
  const file = path.join(directory, 'tokens.usearch');
  const built = await builtOnce(directory, async () => {
    build(usearch, corpus, threads).save(file);
    return statSync(file).size;
  });
  onProgress(
    `usearch: built over ${tokenVectorsOf(corpus)} token vectors in ${built.buildSeconds.toFixed(0)} s`,
  );
  const graph = newGraph(usearch, corpus.dim);
  graph.load(file);
  const chunks = new Chunks(engine, corpus);
  for (const count of tokensPerQueryToken) {
    yield {
      variant: 'usearch_tokens',
      settings: `${count} tokens a query token, bf16, connectivity 16, expansion ${expansionAdd}`,
      candidateK: null,
      built,
      search: async (query) => {
        const { keys } = graph.search(query.vectors, count, threads);
        return chunks.ranked(query, keys, topK);
      },
    };
  }
}

function newGraph(usearch: UsearchModule, dim: number): TokenGraph {
  return new usearch.Index({
    dimensions: dim,
    metric: 'ip',
    quantization: 'bf16',
    connectivity: 16,
    expansion_add: expansionAdd,
    expansion_search: 64,
    multi: false,
  });
}

function build(usearch: UsearchModule, corpus: Corpus, threads: number): TokenGraph {
  const graph = newGraph(usearch, corpus.dim);
  for (const { from, to } of runsOf(corpus, batchRows)) {
    const vectors = dequantised(corpus.read(from, to), corpus.dim, corpus.centring);
    const first = corpus.chunkRows[corpus.documentChunks[from]!]!;
    const rows = vectors.length / corpus.dim;
    graph.add(
      BigUint64Array.from({ length: rows }, (_, row) => BigInt(first + row)),
      vectors,
      threads,
    );
  }
  return graph;
}

/** All chunks in memory, to be scored exactly. */
class Chunks {
  readonly #engine: NativeEngine;
  readonly #corpus: Corpus;
  readonly #vectors: Int8Array;
  readonly #scales: Uint16Array;
  readonly #chunkOfRow: Uint32Array;
  readonly #documents: Uint32Array;

  constructor(engine: NativeEngine, corpus: Corpus) {
    const rows = tokenVectorsOf(corpus);
    this.#engine = engine;
    this.#corpus = corpus;
    this.#vectors = new Int8Array(rows * corpus.dim);
    this.#scales = new Uint16Array(rows);
    this.#chunkOfRow = new Uint32Array(rows);
    this.#documents = documentOfChunks(corpus);
    let row = 0;
    for (let document = 0; document < documentsOf(corpus); document++) {
      const { vectors, scales } = corpus.read(document, document + 1);
      this.#vectors.set(vectors, row * corpus.dim);
      this.#scales.set(scales, row);
      row += scales.length;
    }
    for (let chunk = 0; chunk + 1 < corpus.chunkRows.length; chunk++) {
      this.#chunkOfRow.fill(chunk, corpus.chunkRows[chunk], corpus.chunkRows[chunk + 1]);
    }
  }

  /** Documents by the best of the chunks that hold the token vectors. */
  async ranked(query: Query, tokens: BigUint64Array, topK: number): Promise<Ranking> {
    const { dim, chunkRows: starts } = this.#corpus;
    const candidates = [...new Set(Array.from(tokens, (row) => this.#chunkOfRow[Number(row)]!))];
    const chunkRows = Uint32Array.from(candidates, (chunk) => rowsOfChunk(this.#corpus, chunk));
    const rows = chunkRows.reduce((sum, count) => sum + count, 0);
    const vectors = new Int8Array(rows * dim);
    const scales = new Uint16Array(rows);
    let at = 0;
    for (const [place, chunk] of candidates.entries()) {
      const first = starts[chunk]!;
      vectors.set(this.#vectors.subarray(first * dim, (first + chunkRows[place]!) * dim), at * dim);
      scales.set(this.#scales.subarray(first, first + chunkRows[place]!), at);
      at += chunkRows[place]!;
    }
    const request = { query: query.vectors, offsets: new Float32Array(query.rows), dim, components: false };
    const { scores } = await this.#engine.score(request, { chunkRows, vectors, scales });
    const order = [...scores.keys()].toSorted((a, b) => scores[b]! - scores[a]!).slice(0, topK);
    return [...new Set(order.map((place) => this.#documents[candidates[place]!]!))];
  }
}
