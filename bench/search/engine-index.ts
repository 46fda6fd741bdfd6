/**
 * Builds an index of sealed segments and one active segment with the engine, opens it in a state (which document
 * versions are in which segment), and searches it.
 *
 * The version id of a document's n-th version is document + n * documents, so that results name documents.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync, existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { builtFile } from '../../src/process/installation.ts';
import { defaultIndexSettings } from '../../src/index/index-settings.ts';
import type {
  NativeEngine,
  NativeIndex,
  NativeMatching,
  NativeSearch,
  NativeSearchResult,
} from '../../src/index/engine/native.ts';
import type { Comparison } from '../../src/index/recall/estimate.ts';
import { IndexRecall } from '../../src/index/recall/index-recall.ts';
import type { Measuring } from '../../src/index/recall/measuring.ts';
import { chunksOf, documentsOf, rowOf, rowsOf, tokenVectorsOf, type Corpus, type Query } from './corpus.ts';
import { memoryBytes } from '../lib/service/process-counters.ts';
import { metadataOf, rangeOf, selectivities, termsOf, type Selectivity, termOf } from './filters.ts';

/** The settings of a search. */
export interface SearchSettings {
  readonly candidateK: number;
  readonly topK: number;
  readonly plan: 'auto' | 'exact' | 'codes' | 'lists' | 'graph';
  readonly selectivity: Selectivity | undefined;
  /** How documents are selected. */
  readonly by?: 'filter' | 'where';
}

export interface SealedIndex {
  readonly directory: string;
  /** Document at which each sealed segment starts, and the number of documents. */
  readonly segmentStarts: readonly number[];
  readonly buildSeconds: number;
}

/** Documents written once more, in this order, into further segments; and documents deleted. */
export interface Changes {
  readonly rewritten: readonly number[];
  readonly deleted: readonly number[];
  /** Whether full segments of the rewritten documents are sealed; otherwise all stay in the active one. */
  readonly seal: boolean;
}

export interface IndexOptions {
  readonly engine: NativeEngine;
  readonly corpus: Corpus;
  /** Centroids of the codebook; 0 or none = as many as its token vectors deserve. */
  readonly centroids?: number;
  /** The most token vectors of which a search scores every one; 0 or none = as many as this machine scores in 2 ms. */
  readonly exactTokenVectorsMax?: number;
}

/** Segments are as full, and as many, as the service leaves them. */
export const { segmentTokenVectorsMax } = defaultIndexSettings;
const { sealedSegmentsMax, codesTokenVectorsMin } = defaultIndexSettings;

const searchTimeoutMs = 600_000;

/** The folder of an index. Another build of the engine keeps its rows, and makes its codes again. */
export function indexDirectory(cache: string, corpus: Corpus, centroids = 0): string {
  const identity = centroids === 0 ? corpus.identity : `${corpus.identity} ${centroids}`;
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 16);
  return path.join(cache, `${chunksOf(corpus)}-${hash}`);
}

/** Builds the sealed segments and their derived data, as far as `directory` lacks them. */
export async function buildSealed(
  options: IndexOptions,
  directory: string,
  onProgress: (line: string) => void,
): Promise<SealedIndex> {
  const rows = await writeRows(options, directory, onProgress);
  const codes = await deriveCodes(options, directory, rows.segmentStarts, onProgress);
  return { directory, segmentStarts: rows.segmentStarts, buildSeconds: rows.seconds + codes.seconds };
}

interface RowsWritten {
  readonly segmentStarts: readonly number[];
  /** Segments that are there. */
  readonly sealed: number;
  readonly seconds: number;
}

/** Writes segment by segment. A run that was cut short goes on with the next one. */
async function writeRows(
  options: IndexOptions,
  directory: string,
  onProgress: (line: string) => void,
): Promise<RowsWritten> {
  const file = path.join(directory, 'rows.json');
  mkdirSync(directory, { recursive: true });
  let rows: RowsWritten = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as RowsWritten)
    : { segmentStarts: splitEvenly(options.corpus), sealed: 0, seconds: 0 };
  const { segmentStarts } = rows;
  while (rows.sealed + 1 < segmentStarts.length) {
    const startedAt = performance.now();
    const segmentId = rows.sealed + 1;
    rmSync(segmentFile(directory, segmentId), { force: true });
    const index = createIndex(options);
    try {
      const documents = range(segmentStarts[segmentId - 1]!, segmentStarts[segmentId]!);
      await writeSegment(index, options.corpus, { segmentId, directory, documents, version: 0 });
      await sealSegment(index, segmentId);
    } finally {
      index.close();
    }
    const seconds = rows.seconds + (performance.now() - startedAt) / 1000;
    rows = { segmentStarts, sealed: segmentId, seconds };
    writeFileSync(file, JSON.stringify(rows));
    onProgress(`sealed segment ${segmentId} of ${segmentStarts.length - 1}`);
  }
  return rows;
}

interface CodesBuilt {
  /** Hash of the addon that built them. */
  readonly engine: string;
  readonly complete: boolean;
  readonly seconds: number;
}

/** Keeps codes that are there and not outdated. */
async function deriveCodes(
  options: IndexOptions,
  directory: string,
  segmentStarts: readonly number[],
  onProgress: (line: string) => void,
): Promise<CodesBuilt> {
  const file = path.join(directory, 'codes.json');
  const engine = createHash('sha256')
    .update(readFileSync(builtFile('maxsimd.node')))
    .digest('hex');
  let codes: CodesBuilt | undefined;
  if (existsSync(file)) codes = JSON.parse(readFileSync(file, 'utf8')) as CodesBuilt;
  if (codes?.engine !== engine) {
    for (const name of readdirSync(directory)) {
      if (name.endsWith('.codes') || name.startsWith('codebook-')) rmSync(path.join(directory, name));
    }
    codes = { engine, complete: false, seconds: 0 };
  }
  if (codes.complete) return codes;
  writeFileSync(file, JSON.stringify(codes));
  const startedAt = performance.now();
  const before = process.cpuUsage();
  let millions = 0;
  let peakBytes = 0;
  const sampling = setInterval(() => (peakBytes = Math.max(peakBytes, memoryBytes('self', 'RssAnon'))), 50);
  const index = createIndex(options);
  try {
    await openSealed(index, directory, segmentStarts);
    millions = (await buildCodes(index, onProgress)) / 1e6;
  } finally {
    clearInterval(sampling);
    index.close();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(before);
  if (millions > 0)
    onProgress(
      `codes: ${((millions * 1e6) / seconds).toFixed(0)} token vectors a second, ` +
        `${((user + system) / 1e6 / millions).toFixed(2)} s of processor time a million, ` +
        `own memory at most ${(peakBytes / 2 ** 20).toFixed(0)} MiB`,
    );
  codes = { engine, complete: true, seconds };
  writeFileSync(file, JSON.stringify(codes));
  return codes;
}

function segmentFile(directory: string, segmentId: number): string {
  return path.join(directory, `${segmentId}.seg`);
}

/** Opens the sealed segments; every document is born at 1. */
async function openSealed(
  index: NativeIndex,
  directory: string,
  segmentStarts: readonly number[],
): Promise<void> {
  const documents = segmentStarts.at(-1)!;
  const segmentIds = new Float64Array(documents);
  const records = new Uint32Array(documents);
  for (let segment = 0; segment + 1 < segmentStarts.length; segment++) {
    const [first, end] = [segmentStarts[segment]!, segmentStarts[segment + 1]!];
    const file = segmentFile(directory, segment + 1);
    await index.openSegment(segment + 1, file, { recordsReferenced: end - first, sealed: true });
    segmentIds.fill(segment + 1, first, end);
    for (let document = first; document < end; document++) records[document] = document - first;
  }
  index.loadLifespans({
    segmentIds,
    records,
    versionIds: Float64Array.from({ length: documents }, (_, document) => document),
    born: new Float64Array(documents).fill(1),
    died: new Float64Array(documents),
  });
}

export class OpenIndex {
  readonly openSeconds: number;
  readonly #index: NativeIndex;
  readonly #documents: number;
  readonly #directories: readonly string[];
  readonly #changesDirectory: string;

  private constructor(
    index: NativeIndex,
    documents: number,
    directories: readonly [sealed: string, changes: string],
    openSeconds: number,
  ) {
    this.#index = index;
    this.#documents = documents;
    this.#directories = directories;
    this.#changesDirectory = directories[1];
    this.openSeconds = openSeconds;
  }

  /** Opens the sealed segments, writes the changes into segments of their own and makes them visible. */
  static async open(
    options: IndexOptions,
    { directory, segmentStarts }: SealedIndex,
    { rewritten, deleted, seal }: Changes,
  ): Promise<OpenIndex> {
    const { corpus } = options;
    const documents = documentsOf(corpus);
    const changesDirectory = path.join(directory, `changes-${process.pid}-${(opened += 1)}`);
    mkdirSync(changesDirectory);
    const index = createIndex(options);
    const startedAt = performance.now();
    const segmentOf = (document: number): number =>
      segmentStarts.findLastIndex((start) => start <= document) + 1;
    await openSealed(index, directory, segmentStarts);
    const openSeconds = (performance.now() - startedAt) / 1000;
    const born: { segmentId: number; record: number }[] = [];
    const parts = seal ? splitFull(corpus, rewritten) : [rewritten];
    for (const [number, part] of parts.entries()) {
      const segmentId = segmentStarts.length + number;
      await writeSegment(index, corpus, {
        segmentId,
        directory: changesDirectory,
        documents: part,
        version: 1,
      });
      for (const record of part.keys()) born.push({ segmentId, record });
      if (seal && number + 1 < parts.length) await sealSegment(index, segmentId);
    }
    await buildCodes(index, () => {});
    const died = [...rewritten, ...deleted].map((document) => ({
      segmentId: segmentOf(document),
      record: document - segmentStarts[segmentOf(document) - 1]!,
    }));
    index.publish(generation, columnsOf(born), columnsOf(died));
    await onDevice(options, index);
    return new OpenIndex(index, documents, [directory, changesDirectory], openSeconds);
  }

  search(query: Query, settings: SearchSettings): Promise<NativeSearchResult> {
    return this.ask(this.asked(query, settings));
  }

  ask(search: NativeSearch): Promise<NativeSearchResult> {
    return this.#index.search(search);
  }

  asked(query: Query, settings: SearchSettings): NativeSearch {
    return {
      query: query.vectors,
      offsets: new Float32Array(query.rows),
      topK: settings.topK,
      candidateK: settings.candidateK,
      generation,
      components: false,
      timeoutMs: searchTimeoutMs,
      plan: settings.plan,
      ...this.#selection(settings),
    };
  }

  /** Measures recall as the service does, after these comparisons. */
  recall(measuring: Measuring, comparisons: readonly Comparison[]): IndexRecall {
    const segments = this.#index.segments();
    const chunks = segments.reduce((sum, segment) => sum + segment.chunks, 0);
    const codebooks = segments.flatMap(({ codebook }) => codebook || []);
    return new IndexRecall({
      measuring,
      known: { breadth: 1, comparisons, chunks, codebooks },
      segments: () => this.#index.segments(),
      ask: (search) => this.ask(search),
      moves: () => 0,
      onMove: () => undefined,
    });
  }

  #selection({ selectivity, by }: SearchSettings): Pick<NativeMatching, 'filterTerms' | 'where'> {
    if (selectivity === undefined) return {};
    return by === 'where' ? { where: rangeOf(selectivity) } : { filterTerms: termOf(selectivity) };
  }

  /** Hands over the values that ranges compare, as the first range of a service does. */
  async addValues(): Promise<void> {
    const needed = { where: rangeOf(...selectivities) };
    for (const { segmentId } of this.#index.segments()) {
      const { records, versionIds } = await this.#index.recordsWithoutValues(segmentId, generation, needed);
      for (let first = 0; first < records.length; first += valuesInTurn) {
        const part = versionIds.subarray(first, first + valuesInTurn);
        const objects = Array.from(part, (version) => metadataOf(version % this.#documents, this.#documents));
        await this.#index.addValues(
          segmentId,
          needed,
          records.subarray(first, first + valuesInTurn),
          objects,
        );
      }
    }
  }

  /** Documents by their best returned chunk, best first. */
  async documents(query: Query, settings: SearchSettings): Promise<readonly number[]> {
    const { versionIds } = await this.search(query, settings);
    return [...new Set(Array.from(versionIds, (version) => version % this.#documents))];
  }

  /** Bytes of all files, dead versions included; a file of several names once. */
  diskBytes(): number {
    const bytes = new Map<number, number>();
    for (const directory of this.#directories) {
      for (const entry of readdirSync(directory, { withFileTypes: true })) {
        if (!entry.isFile() || entry.name.endsWith('.json')) continue;
        const { ino, size } = statSync(path.join(directory, entry.name));
        bytes.set(ino, size);
      }
    }
    return [...bytes.values()].reduce((sum, size) => sum + size, 0);
  }

  segments(): number {
    return this.#index.segments().length;
  }

  close(): void {
    this.#index.close();
    rmSync(this.#changesDirectory, { recursive: true, force: true });
  }
}

const valuesInTurn = 512;
let opened = 0;
/** Sealed versions are born at 1; all changes happen at 2. */
const generation = 2;

function createIndex({ engine, corpus, centroids = 0, exactTokenVectorsMax = 0 }: IndexOptions): NativeIndex {
  return engine.createIndex({
    dim: corpus.dim,
    rowBits: corpus.rowBits,
    exactTokenVectorsMax,
    centroids,
  });
}

/** Makes the engine's device load the index, and waits for it. */
async function onDevice({ engine, corpus: { dim } }: IndexOptions, index: NativeIndex): Promise<void> {
  if (engine.device() === undefined) return;
  await index.search({
    query: new Float32Array(dim).fill(1),
    offsets: new Float32Array(1),
    topK: 1,
    candidateK: 1,
    generation,
    components: false,
    timeoutMs: searchTimeoutMs,
  });
  while (engine.device()!.coming > 0) await pause(20);
}

interface SegmentParts {
  readonly segmentId: number;
  readonly directory: string;
  readonly documents: readonly number[];
  readonly version: number;
}

async function writeSegment(
  index: NativeIndex,
  corpus: Corpus,
  { segmentId, directory, documents, version }: SegmentParts,
): Promise<void> {
  await index.createSegment(segmentId, segmentFile(directory, segmentId));
  const count = documentsOf(corpus);
  for (const document of documents) {
    const { vectors, scales } = corpus.read(document, document + 1);
    const record = {
      versionId: document + version * count,
      chunkRows: rowsOf(corpus, document),
      vectors,
      scales,
      terms: termsOf(document, count),
    };
    // One after the other: records are numbered in the order of their writes.
    await index.append(segmentId, record);
  }
}

async function sealSegment(index: NativeIndex, segmentId: number): Promise<void> {
  await index.sync(segmentId);
  await index.seal(segmentId);
}

/**
 * Encodes segments whose codes are missing or outdated, until there are none, as the service's upkeep does.
 * Returns the token vectors encoded.
 */
async function buildCodes(index: NativeIndex, onProgress: (line: string) => void): Promise<number> {
  for (let encoded = 0; ;) {
    const wanted = index
      .segments()
      .find(
        ({ state, tokenVectors, centroids, codesOutdated }) =>
          state === 'sealed' && tokenVectors >= codesTokenVectorsMin && (centroids === 0 || codesOutdated),
      );
    if (wanted === undefined) return encoded;
    const { milliseconds, centroids } = await index.buildCodes(wanted.segmentId);
    encoded += wanted.tokenVectors;
    onProgress(
      `built codes of segment ${wanted.segmentId}: ${centroids} centroids, ${(milliseconds / 1000).toFixed(1)} s`,
    );
  }
}

/** Splits the documents into segments of about equal size, as many as merges leave. */
function splitEvenly(corpus: Corpus): readonly number[] {
  const rows = tokenVectorsOf(corpus);
  const segments = Math.min(sealedSegmentsMax, Math.ceil(rows / segmentTokenVectorsMax));
  const starts = [0];
  for (let document = 0; document < documentsOf(corpus) && starts.length < segments; document++) {
    if (rowOf(corpus, document) >= (rows * starts.length) / segments) starts.push(document);
  }
  return [...starts, documentsOf(corpus)];
}

/** Runs that fill a segment each; the last one stays active. */
function splitFull(corpus: Corpus, documents: readonly number[]): readonly (readonly number[])[] {
  const parts: number[][] = [[]];
  let rows = 0;
  for (const document of documents) {
    if (rows >= segmentTokenVectorsMax) {
      parts.push([]);
      rows = 0;
    }
    parts.at(-1)?.push(document);
    rows += rowOf(corpus, document + 1) - rowOf(corpus, document);
  }
  return parts;
}

function columnsOf(lifespans: readonly { readonly segmentId: number; readonly record: number }[]) {
  return {
    segmentIds: Float64Array.from(lifespans, ({ segmentId }) => segmentId),
    records: Uint32Array.from(lifespans, ({ record }) => record),
  };
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
