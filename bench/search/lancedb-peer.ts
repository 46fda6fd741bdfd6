/**
 * LanceDB with a multivector column: a row a chunk, its token vectors as a list of unit vectors (cosine is the only
 * metric it has for them; the centring mean is added again, so that its MaxSim ranks as ours does for query rows of
 * length 1). Both index families that its documentation recommends, over a sweep of what may be set at query time.
 */
import { dequantised } from '../lib/vectors.ts';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { chunksOf, documentOfChunks, runsOf, tokenVectorsOf, type Corpus, type Query } from './corpus.ts';
import type { Searcher } from './measure.ts';

/** The part of the library's interface that is used here. */
interface LanceModule {
  connect(directory: string): Promise<LanceConnection>;
  readonly Index: {
    ivfPq(options: object): unknown;
    hnswSq(options: object): unknown;
  };
}
interface LanceConnection {
  createTable(name: string, data: unknown): Promise<LanceTable>;
  openTable(name: string): Promise<LanceTable>;
  close(): void;
}
interface LanceTable {
  add(data: unknown): Promise<unknown>;
  createIndex(column: string, options: object): Promise<void>;
  vectorSearch(vectors: readonly Float32Array[]): LanceQuery;
  optimize(): Promise<unknown>;
}
interface LanceQuery {
  distanceType(name: 'cosine'): LanceQuery;
  nprobes(count: number): LanceQuery;
  ef(count: number): LanceQuery;
  refineFactor(factor: number): LanceQuery;
  select(columns: readonly string[]): LanceQuery;
  limit(count: number): LanceQuery;
  toArray(): Promise<readonly { readonly chunk: number }[]>;
}

interface ArrowModule {
  readonly Float32: new () => unknown;
  readonly Int32: new () => unknown;
  readonly Field: new (name: string, type: unknown, nullable: boolean) => unknown;
  readonly FixedSizeList: new (size: number, child: unknown) => unknown;
  readonly List: new (child: unknown) => unknown;
  readonly Struct: new (fields: readonly unknown[]) => unknown;
  readonly Schema: new (fields: readonly unknown[]) => unknown;
  readonly RecordBatch: new (schema: unknown, data: unknown) => unknown;
  readonly Table: new (schema: unknown, batches: readonly unknown[]) => unknown;
  makeData(props: object): unknown;
}

interface Setting {
  readonly nprobes: number;
  readonly refine: number;
  readonly ef?: number;
}

const tableName = 'chunks';
const batchRows = 200_000;

export interface LanceOptions {
  readonly corpus: Corpus;
  /** Chunks to return. */
  readonly topK: number;
  /** Its own directory, kept between runs over the same corpus. */
  readonly directory: string;
  readonly onProgress: (line: string) => void;
}

/** One setting, ready to search; good until the next one is asked for. */
export interface LancePoint {
  readonly settings: string;
  readonly search: Searcher;
}

/** Builds, and gives one setting after the other. The query rows given to it have length 1. */
export async function* lancePoints(
  peersDirectory: string,
  options: LanceOptions,
): AsyncGenerator<LancePoint> {
  const load = createRequire(path.join(peersDirectory, 'package.json'));
  const lance = load('@lancedb/lancedb') as LanceModule;
  const arrow = load('apache-arrow') as ArrowModule;
  const { corpus, onProgress } = options;
  const documents = documentOfChunks(corpus);
  for (const family of familiesOf(lance, corpus)) {
    const directory = path.join(options.directory, family.folder);
    await builtOnce(directory, async () => {
      onProgress(`lancedb ${family.name}: building`);
      const connection = await lance.connect(directory);
      const table = await fill(connection, arrow, corpus);
      await table.createIndex('vector', { config: family.config, waitTimeoutSeconds: 3600 });
      connection.close();
    });
    const connection = await lance.connect(directory);
    const table = await connection.openTable(tableName);
    for (const setting of family.settings) {
      yield {
        settings: `${family.name}, nprobes ${setting.nprobes}, refine ${setting.refine}${setting.ef === undefined ? '' : `, ef ${setting.ef}`}`,
        search: async (query) => {
          const found = await asked(table, query, setting, options);
          return [...new Set(found.map((chunk) => documents[chunk]!))];
        },
      };
    }
    connection.close();
  }
}

/** Builds into an empty directory, unless an earlier run has built there. */
async function builtOnce(directory: string, build: () => Promise<void>): Promise<void> {
  const file = path.join(directory, 'built.json');
  if (existsSync(file)) return;
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  await build();
  writeFileSync(file, '{}');
}

async function asked(
  table: LanceTable,
  { vectors, rows }: Query,
  { nprobes, refine, ef }: Setting,
  { corpus, topK }: LanceOptions,
): Promise<readonly number[]> {
  const parts = Array.from({ length: rows }, (_, row) =>
    vectors.subarray(row * corpus.dim, (row + 1) * corpus.dim),
  );
  const query = table.vectorSearch(parts).distanceType('cosine').nprobes(nprobes);
  if (refine > 0) query.refineFactor(refine);
  if (ef !== undefined) query.ef(ef);
  const found = await query.select(['chunk', '_distance']).limit(topK).toArray();
  return found.map(({ chunk }) => chunk);
}

interface Family {
  readonly folder: string;
  readonly name: string;
  readonly config: unknown;
  readonly settings: readonly Setting[];
}

function familiesOf(lance: LanceModule, corpus: Corpus): readonly Family[] {
  const numPartitions = Math.max(1, Math.round(Math.sqrt(tokenVectorsOf(corpus))));
  const graphPartitions = Math.max(1, Math.round(tokenVectorsOf(corpus) / 1_000_000));
  const numSubVectors = corpus.dim / 4;
  return [
    {
      folder: 'ivf-pq',
      name: `IVF_PQ, ${numPartitions} partitions, ${numSubVectors} sub-vectors`,
      config: lance.Index.ivfPq({ distanceType: 'cosine', numPartitions, numSubVectors }),
      settings: [
        { nprobes: 8, refine: 1 },
        { nprobes: 32, refine: 1 },
        { nprobes: 32, refine: 4 },
        { nprobes: 64, refine: 10 },
        { nprobes: 128, refine: 20 },
      ],
    },
    {
      folder: 'ivf-hnsw-sq',
      name: `IVF_HNSW_SQ, ${graphPartitions} partitions`,
      config: lance.Index.hnswSq({ distanceType: 'cosine', numPartitions: graphPartitions }),
      settings: [
        // It wants `ef` no smaller than what it asks of the graph, which is more than top_k times refine.
        { nprobes: graphPartitions, refine: 1, ef: 1000 },
        { nprobes: graphPartitions, refine: 2, ef: 2000 },
        { nprobes: graphPartitions, refine: 4, ef: 4000 },
        { nprobes: graphPartitions, refine: 10, ef: 10_000 },
      ],
    },
  ];
}

async function fill(connection: LanceConnection, arrow: ArrowModule, corpus: Corpus): Promise<LanceTable> {
  const item = new arrow.Field('item', new arrow.Float32(), true);
  const token = new arrow.FixedSizeList(corpus.dim, item);
  const matrix = new arrow.List(new arrow.Field('item', token, true));
  const fields = [
    new arrow.Field('chunk', new arrow.Int32(), false),
    new arrow.Field('vector', matrix, false),
  ];
  const schema = new arrow.Schema(fields);
  let table: LanceTable | undefined;
  for (const { from, to } of runsOf(corpus, batchRows)) {
    const first = corpus.documentChunks[from]!;
    const last = corpus.documentChunks[to]!;
    const values = unitRows(dequantised(corpus.read(from, to), corpus, corpus.centring), corpus.dim);
    const starts = Int32Array.from(
      { length: last - first + 1 },
      (_, at) => corpus.chunkRows[first + at]! - corpus.chunkRows[first]!,
    );
    const floats = arrow.makeData({ type: new arrow.Float32(), data: values });
    const tokens = arrow.makeData({
      type: token,
      length: values.length / corpus.dim,
      nullCount: 0,
      child: floats,
    });
    const chunks = Int32Array.from({ length: last - first }, (_, at) => first + at);
    const children = [
      arrow.makeData({ type: new arrow.Int32(), data: chunks }),
      arrow.makeData({
        type: matrix,
        length: last - first,
        nullCount: 0,
        valueOffsets: starts,
        child: tokens,
      }),
    ];
    const struct = arrow.makeData({
      type: new arrow.Struct(fields),
      length: last - first,
      nullCount: 0,
      children,
    });
    const batch = new arrow.Table(schema, [new arrow.RecordBatch(schema, struct)]);
    if (table === undefined) table = await connection.createTable(tableName, batch);
    else await table.add(batch);
  }
  if (table === undefined)
    throw new Error(`this is a bug: a corpus of ${chunksOf(corpus)} chunks has no rows`);
  await table.optimize();
  return table;
}

function unitRows(rows: Float32Array, dim: number): Float32Array {
  for (let from = 0; from < rows.length; from += dim) {
    let square = 0;
    for (let at = from; at < from + dim; at++) square += rows[at]! * rows[at]!;
    const factor = 1 / Math.sqrt(square || 1);
    for (let at = from; at < from + dim; at++) rows[at]! *= factor;
  }
  return rows;
}
