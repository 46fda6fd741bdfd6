/**
 * The quality of a model's rankings over a judged collection, for `maxsimd models add --beir`: late interaction by stored rows and by
 * f32 rows, and, beside them, the single vector of the same network. Each chunk runs once, and all three see the same chunks. A
 * document counts at its best chunk. Only the best of each query and one block of chunks are kept.
 *
 * The engine scores stored rows of every chunk. MaxSim of f32 rows is slow, so it is computed of the chunks that are among the best
 * `rescoredMax` of a query by stored rows so far, from which the ten best documents come.
 */
import { RowMaker, Rotation } from '../../../encoder/inference/rows.ts';
import { normalise } from '../../../encoder/inference/unit-rows.ts';
import type { ServedModel } from '../../../encoder/model/served-model.ts';
import type { NativeEngine } from '../../../index/engine/native.ts';
import { mean } from '../../evaluation/distribution.ts';
import { ndcg } from '../../evaluation/ndcg.ts';
import { withEngine } from '../../index/index-access.ts';
import { startProgress } from '../../progress.ts';
import type { Running } from '../best-ten.ts';
import { queryRowsOf, querySequences, statesOf } from '../f32-rows.ts';
import { inTiles, maxSim, scoresByEngine, storedRows } from '../scoring.ts';
import { BestOf } from './best-of.ts';
import type { Collection, JudgedQuery } from './collection.ts';
import { type SingleVector, singleVectorOf } from './single-vector.ts';

/** nDCG@10 of each kind of vectors. */
export interface Quality {
  readonly stored: number;
  readonly f32: number;
  /** Absent where the model has none. */
  readonly singleVector: number | undefined;
}

const cutoff = 10;
const rescoredMax = 100;
/** Chunks whose f32 rows are in memory together. */
const blockChunks = 64;

/** A query, and what it has found so far. */
interface Searching {
  readonly query: JudgedQuery;
  /** f32 [rows x dim], weighted. `turned` is rotated as stored rows of few bits are. */
  readonly rows: Float32Array;
  readonly turned: Float32Array;
  /** f32 [dim]. */
  readonly vector: Float32Array | undefined;
  /** Chunks by stored rows. */
  readonly chunks: BestOf;
  /** Documents. */
  readonly best: Readonly<Record<'stored' | 'f32' | 'singleVector', BestOf>>;
}

interface Chunk {
  readonly number: number;
  readonly document: number;
  /** f32 [tokens x dim] of length 1. */
  readonly rows: Float32Array;
  readonly vector: Float32Array | undefined;
}

export async function measureQuality(
  model: ServedModel,
  collection: Collection,
  pooling: SingleVector['pooling'] | undefined,
  { stderr, signal }: Running,
): Promise<Quality> {
  const { chunks, queries } = collection;
  const progress = startProgress(stderr, chunks.length);
  try {
    const searching = await searchesOf(model, queries, pooling);
    await withEngine({ MAXSIMD_ENGINE_THREADS: 0 }, async (engine) => {
      const search = searchIn(model, collection, searching, engine);
      let block: Chunk[] = [];
      let number = 0;
      for await (const states of statesOf(
        model,
        chunks.map(({ sequence }) => sequence),
      )) {
        signal.throwIfAborted();
        block.push(chunkOf(model, states, { number, document: chunks[number]!.document }, pooling));
        number += 1;
        progress.update(number, `${number} of ${chunks.length} chunks encoded`);
        if (block.length < blockChunks && number < chunks.length) continue;
        await search(block);
        block = [];
      }
    });
    const quality = (kind: keyof Searching['best']): number =>
      mean(
        searching.map(({ query, best }) =>
          ndcg(
            best[kind].keys.map((document) => collection.documents[document]!),
            query.grades,
            cutoff,
          ),
        ),
      );
    return {
      stored: quality('stored'),
      f32: quality('f32'),
      singleVector: pooling === undefined ? undefined : quality('singleVector'),
    };
  } finally {
    progress.stop();
  }
}

async function searchesOf(
  model: ServedModel,
  queries: readonly JudgedQuery[],
  pooling: SingleVector['pooling'] | undefined,
): Promise<readonly Searching[]> {
  const texts = queries.map(({ text }) => text);
  const vectors: Float32Array[] = [];
  if (pooling !== undefined) {
    for await (const states of statesOf(model, querySequences(model, texts)))
      vectors.push(singleVectorOf(states, model.dim, pooling));
  }
  const rotation = model.rowBits < 8 ? new Rotation(model.dim) : undefined;
  const searching: Searching[] = [];
  for await (const rows of queryRowsOf(model, texts)) {
    const turned = rows.slice();
    rotation?.apply(turned);
    searching.push({
      query: queries[searching.length]!,
      rows,
      turned,
      vector: vectors[searching.length],
      chunks: new BestOf(rescoredMax),
      best: { stored: new BestOf(cutoff), f32: new BestOf(cutoff), singleVector: new BestOf(cutoff) },
    });
  }
  return searching;
}

function chunkOf(
  { dim, session }: ServedModel,
  states: Float32Array,
  place: Pick<Chunk, 'number' | 'document'>,
  pooling: SingleVector['pooling'] | undefined,
): Chunk {
  const vector = pooling === undefined ? undefined : singleVectorOf(states, dim, pooling);
  if (session.normalise) normalise(states, dim);
  return { ...place, rows: states, vector };
}

/** Returns what offers a block of chunks to all queries. */
function searchIn(
  model: ServedModel,
  { documents }: Collection,
  searching: readonly Searching[],
  engine: NativeEngine,
): (block: readonly Chunk[]) => Promise<void> {
  const { dim } = model;
  const maker = new RowMaker(model.session);
  const turned = searching.map((each) => each.turned);
  return async (block) => {
    const stored = block.map(({ rows }) =>
      storedRows(maker.make(rows.slice(), Uint32Array.of(rows.length / dim))),
    );
    const scores = await scoresByEngine(engine, model, turned, stored);
    const tiled = new Map<Chunk, Float32Array>();
    for (const [i, { query, rows, vector, chunks, best }] of searching.entries()) {
      for (const [at, chunk] of block.entries()) {
        const docId = documents[chunk.document]!;
        // In some sets the queries are documents, which nobody judged for themselves.
        if (docId === query.id && !query.grades.has(docId)) continue;
        const score = scores[i]![at]!;
        best.stored.offer(chunk.document, score);
        if (vector !== undefined) best.singleVector.offer(chunk.document, product(vector, chunk.vector!));
        if (!chunks.offer(chunk.number, score)) continue;
        const exact = tiled.get(chunk) ?? inTiles(chunk.rows, dim);
        tiled.set(chunk, exact);
        best.f32.offer(chunk.document, maxSim(rows, exact, dim));
      }
    }
  };
}

function product(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (const [i, value] of one.entries()) sum += value * other[i]!;
  return sum;
}
