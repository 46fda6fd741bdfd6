/**
 * The addon's types and its only importer. Asynchronous methods run on the addon's own threads.
 *
 * Errors are `Error`s with a `code` (`EngineErrorCode`). A bad argument throws `invalid_argument` at the call, before any work
 * begins. A failure on the addon's threads rejects. `io` has an `errno`. When a record cannot be read (`io`) or is not what was
 * written (`corrupt`) the error names it by `segmentId` and `record`. Work that needs bytes of a segment that are not here yet
 * fails with `absent`, `segmentIds` and `parts`, and may be tried again once they are here.
 *
 * Handles are closed explicitly, and garbage collection is only a backstop. `close()` is idempotent and waits for nothing: work
 * in flight keeps what it reads and settles normally. Every method of a closed handle throws `closed`.
 */
import { createRequire } from 'node:module';
import { builtFile } from '../../process/installation.ts';
import type { RowShape } from '../../contracts/row-shape.ts';
import type {
  CodesInspection,
  ColumnInspection,
  PostingsInspection,
  SegmentInspection,
} from './inspections.ts';

export type KernelName = 'scalar' | 'avx2' | 'avxvnni' | 'avx512vnni' | 'amx' | 'neon';

export interface EngineOptions {
  /** Worker threads; 0 = one for each core. */
  readonly threads: number;
  /** A forced kernel that this machine lacks is an error, never a silent fall-back. */
  readonly kernel: KernelName | 'auto';
  /** A device that scores segments in its memory. One that cannot be opened is an error. */
  readonly device?: EngineDeviceOptions;
  /** Memory that all engines of this process may keep for their indexes; absent = as it was set before, at first unbounded. */
  readonly memoryBytes?: number;
}

export interface EngineDeviceOptions {
  /** Path of the library that drives the device (native/device/library.h). */
  readonly driver: string;
  readonly ordinal: number;
  /** Memory for token matrices; 0 = half of the device's. */
  readonly memoryBytes: number;
}

export interface EngineDevice {
  readonly name: string;
  readonly mostBytes: number;
  /** Bytes of the segments in its memory, and their number. */
  readonly bytes: number;
  readonly segments: number;
  readonly coming: number;
  readonly scored: number;
  /** Why a segment could not be copied there last; '' = never. */
  readonly refusal: string;
  /** Why the last search there failed, after which the device is not used for a minute; '' = it did not fail. */
  readonly failure: string;
}

export interface EngineMemory {
  readonly mostBytes: number;
  /** Bytes of directories, codebooks, graphs, columns and running builds. It may pass `mostBytes` for moments (`memory.h`). */
  readonly takenBytes: number;
  /** Bytes of the codes of open indexes, and of those codes that the page cache may not evict. */
  readonly codesBytes: number;
  readonly heldBytes: number;
}

/** A tenant with an open index. */
export interface EngineMemoryOwner {
  readonly owner: string;
  readonly takenBytes: number;
}

export interface EngineInfo {
  readonly kernel: KernelName;
  readonly kernels: readonly { readonly name: KernelName; readonly supported: boolean }[];
  readonly threads: number;
}

/** Without `rowBits` rows have 8 bits a component. */
type NativeShape = Pick<RowShape, 'dim'> & Partial<RowShape>;

export interface NativeIndexOptions extends NativeShape {
  /**
   * Token vectors that a search may scan exactly. Above it candidates come from codes. 0 = as many as the kernel, whose rate is
   * measured, scans in 2 ms.
   */
  readonly exactTokenVectorsMax: number;
  /** Centroids of each codebook that is fitted, for tests and benchmarks; without it they follow from the token vectors. */
  readonly centroids?: number;
  /** The tenant on whose account the index takes memory; absent for tools. */
  readonly owner?: string | undefined;
}

/** One document version: the token matrices of its chunks, appended whole. */
export interface NativeRecord {
  readonly versionId: number;
  /** Rows of each chunk, in the order of chunk_index. There is at least one chunk, and each has at least one row. */
  readonly chunkRows: Uint32Array;
  /** Rows as they are stored (native/kernels/rows.h): of 8 bits int8 [rows x dim]. */
  readonly vectors: Int8Array;
  /** f16 bits [rows]. */
  readonly scales: Uint16Array;
  /** Metadata terms, 16 bytes each, concatenated. Filters match them. */
  readonly terms: Uint8Array;
  /** u32 [chunks x 3]: start and end of each chunk in its text, and its bytes of `rowPlaces`. Absent = unknown. */
  readonly chunkRanges?: Uint32Array;
  readonly rowPlaces?: Uint8Array;
}

export interface SegmentInfo {
  readonly segmentId: number;
  readonly state: 'active' | 'sealed';
  readonly records: number;
  readonly recordsLive: number;
  readonly chunks: number;
  readonly tokenVectors: number;
  readonly termBytes: number;
  readonly fileBytes: number;
  /** Bytes of its files of codes and postings. A codebook that segments share counts with the first of them. */
  readonly derivedBytes: number;
  /** Bytes of the file of postings; 0 = no usable one, so that filters read the records until `buildPostings`. */
  readonly postingBytes: number;
  /** Size of the codebook; 0 = no codes yet, so that its chunks are scored exactly. */
  readonly centroids: number;
  /** Name of the codebook's file, in the segment's folder; '' = none. */
  readonly codebook: string;
  /** Records may have `chunkRanges`. Segments of earlier formats keep none. */
  readonly keepsRanges: boolean;
  /** The codes were made with an older codebook than the index has now: `buildCodes` is due again. */
  readonly codesOutdated: boolean;
}

export interface CodesBuilt {
  readonly chunks: number;
  readonly bytes: number;
  readonly centroids: number;
  /** A new codebook was fitted, so that the codes of other segments are outdated now. */
  readonly fitted: boolean;
  readonly milliseconds: number;
}

/** Columns: entry i is about record `records[i]` of segment `segmentIds[i]`. */
export interface LifespanColumns {
  readonly segmentIds: Float64Array;
  readonly records: Uint32Array;
}

/** Asks for the documents of a snapshot that have certain metadata. */
export interface NativeMatching {
  /** Metadata terms, 16 bytes each, all of which a document must have. Absent = no filter. */
  readonly filterTerms?: Uint8Array;
  /**
   * A condition (`conditionOf`) that a document must meet, too. The call rejects with `values_missing` when the engine does not
   * know values that the condition compares (`recordsWithoutValues`).
   */
  readonly where?: Uint8Array;
  /** The snapshot: versions with born <= generation < died. */
  readonly generation: number;
  /** Milliseconds from now. After them the call rejects with `deadline_exceeded`. */
  readonly timeoutMs: number;
}

/** The fields whose values a condition compares or a count reads. */
export interface NeededValues extends Pick<NativeMatching, 'where'> {
  /** Names as JSON strings. */
  readonly fields?: readonly string[];
}

/** Files of columns beside a segment's, by their endings (`.columns-…`). */
export interface ColumnFiles {
  /** Files that were written. */
  readonly written: readonly string[];
  /** Files of the fields that were used longest ago, beyond 32 fields. They are to be removed. */
  readonly surplus: readonly string[];
}

export interface NativeCounting extends NativeMatching {
  /** Names as JSON strings. */
  readonly fields: readonly string[];
  /** Values of a field that are returned at most. */
  readonly limit: number;
  /** Distinct values that a field may have. */
  readonly distinctMax: number;
  /** Bytes that the distinct values of all fields may have together. */
  readonly bytesMax: number;
}

export interface NativeCounts {
  /** Documents that match. */
  readonly documents: number;
  /** In the order of the fields. */
  readonly facets: readonly ValueCounts[];
  /** The place of a field with more values than allowed. No field is counted after it. */
  readonly tooMany?: number;
}

/** The most frequent values first; of equal counts numbers in order, then strings by code points, then others. */
export interface ValueCounts {
  readonly distinct: number;
  /** Values as JSON in canonical form; absent where the engine keeps no more than the beginning of a long value. */
  readonly tokens: readonly (string | undefined)[];
  /** Present where there is no token. */
  readonly keys: readonly (Uint8Array | undefined)[];
  readonly counts: Float64Array;
  /** For each value a document that has it. */
  readonly versionIds: Float64Array;
}

/** Spans of a query's words. A document has a span if it carries any of its terms. There are at most 512. */
export interface NativeSpans {
  /** Match terms, 16 bytes each, span by span. */
  readonly terms: Uint8Array;
  /** How many terms each span has: 1 to 8. */
  readonly termCounts: Uint32Array;
}

export interface NativeSpanCounting extends NativeMatching, NativeSpans {}

/** One value for each span, except for `documents`. */
export interface NativeSpanCounts {
  /** The live documents, before the filter. */
  readonly documents: number;
  /** The live documents that have the span, before the filter. Above max(100, 1 percent of `documents`) it is only at least this number. */
  readonly spanDocuments: Float64Array;
  /** The chunks of those documents that pass the filter; 0 where `spanDocuments` is above that bound. */
  readonly chunks: Float64Array;
  /** The token vectors of these chunks. */
  readonly tokenVectors: Float64Array;
}

export interface PausedCount {
  /** For the next call. */
  readonly paused: object;
}

export interface NativeSearch extends NativeMatching {
  /** f32 [rows x dim]. */
  readonly query: Float32Array;
  /** f32 [rows]. Each is added to the similarity of its query token. */
  readonly offsets: Float32Array;
  readonly topK: number;
  /** So many of the best are left out before these. Default: 0. */
  readonly skip?: number;
  readonly candidateK: number;
  /** A factor on the length of shortlists, from .25 to 16. Default: 1. */
  readonly breadth?: number;
  readonly components: boolean;
  /** `topK` and `skip` count documents. They rank by their best chunks, and each comes with up to ten of its own. */
  readonly grouped?: boolean;
  /** Default: `auto`. `exact` scans every live matching chunk, for evaluation and tests. */
  readonly plan?: 'auto' | 'exact' | 'codes' | 'lists' | 'graph';
  /** Runs on one thread of low priority. */
  readonly background?: boolean;
  /**
   * At most 64 spans. Every chunk of a document that has one is scored, and its best chunk gets the bonuses of the document's
   * spans, finite and not negative, on top.
   */
  readonly match?: NativeSpans & { readonly bonuses: Float32Array };
}

/**
 * The best first: by score, then the older document version (the smaller id) first, then by chunk index. A grouped search
 * returns document by document.
 */
export interface NativeSearchResult {
  readonly versionIds: Float64Array;
  readonly chunkIndexes: Uint32Array;
  readonly scores: Float32Array;
  /** Present when the search had `match`: the scores without bonuses. */
  readonly maxsims?: Float32Array;
  /** Present likewise: u32 [results x 2], the spans that gave a result its bonus, a bit each. The first pair's word has spans 0 to 31. */
  readonly matched?: Uint32Array;
  /** u32 [results x 2]: start and end of each chunk in its text; 0 and 0 if that is unknown. */
  readonly chunkRanges: Uint32Array;
  /** The number of chunks that were scored exactly. */
  readonly candidateCount: number;
  /**
   * Present when components were asked for and candidates were preselected. A chunk that was scored for a span alone has NaN and
   * 2**32 - 1.
   */
  readonly candidateScores?: Float32Array;
  readonly candidateRanks?: Uint32Array;
  /** Present when components were asked for: [results x query rows]. */
  readonly similarities?: Float32Array;
  readonly documentTokens?: Uint32Array;
  /** For each result the places of its rows, as they were appended; empty if they are unknown. */
  readonly rowPlaces?: readonly Uint8Array[];
  readonly plan: 'exact' | 'codes' | 'lists' | 'graph' | 'device';
  /** Codes could not be read and were not used. They must be built again. */
  readonly codesLost: boolean;
  readonly timings: {
    readonly queueMs: number;
    readonly filterMs: number;
    readonly candidatesMs: number;
    readonly exactMs: number;
    /** Processor time of the thread that it ran on. A search in the background uses no other. */
    readonly cpuMs: number;
  };
}

/** A search that gives way. It holds its snapshot, so that its result is that of `search`. */
export interface NativeSearchRun {
  /**
   * Works for about so long, and for one step at least. Resolves to the result, or to `undefined` when there is more to do. The
   * time of the search runs from its beginning. After a failure it does not go on.
   */
  next(sliceMs: number): Promise<NativeSearchResult | undefined>;
  close(): void;
}

export interface NativeScore extends NativeShape {
  readonly query: Float32Array;
  readonly offsets: Float32Array;
  readonly components: boolean;
}

export interface NativeScoreResult {
  /** One for each chunk, in the order given. */
  readonly scores: Float32Array;
  readonly similarities?: Float32Array;
  readonly documentTokens?: Uint32Array;
}

export interface SeenRecords {
  readonly records: Uint32Array;
  readonly versionIds: Float64Array;
}

export interface NativeIndex {
  /** Makes an empty active segment. Its file and the directory entry are durable when this resolves. */
  createSegment(segmentId: number, path: string): Promise<void>;
  /**
   * Maps an existing segment.
   *
   * `recordsReferenced`: how many leading records the catalog may refer to. An active file is cut behind them, because a crash
   * may have torn its tail. If one of them has a bad checksum and a live version lies there, `loadLifespans` rejects with
   * `corrupt`. The footer of a sealed file is verified now, its records when a search first touches them or by `verifyRecord`.
   *
   * `sealed`: whether the catalog knows the segment as sealed. Such a file without a footer is `corrupt`. A file that the
   * catalog knows as active may be sealed all the same.
   *
   * `partial`, of a sealed segment: its file is being fetched to another path, where it has its full length. Its derived data
   * lies beside `path`. `parts` has a bit for each part that is here, the first in the lowest bit of the first byte.
   */
  openSegment(
    segmentId: number,
    path: string,
    expected: {
      readonly recordsReferenced: number;
      readonly sealed: boolean;
      readonly partial?: { readonly path: string; readonly partBytes: number; readonly parts: Uint8Array };
    },
  ): Promise<SegmentInfo>;
  /** Says that these parts of a segment that was opened as `partial` are here, too. */
  addParts(segmentId: number, parts: Uint8Array): void;
  /** Writes a record, which is neither durable nor visible yet. Resolves to its number in the segment. */
  append(segmentId: number, record: NativeRecord): Promise<{ readonly record: number }>;
  /** Makes all records durable. Callers share one fdatasync. After a failure the segment refuses every append. */
  sync(segmentId: number): Promise<void>;
  /** Writes postings and footer and syncs. The segment is immutable from then on. */
  seal(segmentId: number): Promise<SegmentInfo>;
  /**
   * Builds and saves the centroid codes of a sealed segment, then uses them. With `plain` a codebook that is fitted for them can
   * be read by earlier releases, and finds less.
   */
  buildCodes(segmentId: number, plain?: boolean): Promise<CodesBuilt>;
  /** Builds the postings of a sealed segment from its records and saves them, then uses them. */
  buildPostings(segmentId: number): Promise<void>;
  /** Copies records into another segment, which is active, for a merge. Resolves to their new numbers, in order. */
  copyRecords(fromSegmentId: number, records: Uint32Array, toSegmentId: number): Promise<Uint32Array>;
  /** Resolves to a record as it was appended. */
  readRecord(segmentId: number, record: number): Promise<NativeRecord>;
  /** Searches that start later do not read the segment. It is unmapped after its last reader. */
  dropSegment(segmentId: number): void;
  /** Loads the generations at which versions were born and died (0 = alive). */
  loadLifespans(
    columns: LifespanColumns & {
      readonly versionIds: Float64Array;
      readonly born: Float64Array;
      readonly died: Float64Array;
    },
  ): void;
  /** Gives record `first + i`, a copy of `records[i]`, the same lifespan. */
  copyLifespans(fromSegmentId: number, records: Uint32Array, toSegmentId: number, first: number): void;
  /** The records that a reader at `generation` or later may see, ascending. */
  recordsSeenSince(segmentId: number, generation: number): SeenRecords;
  /** Makes a commit visible. Generations must be published in order. */
  publish(generation: number, born: LifespanColumns, died: LifespanColumns): void;
  search(search: NativeSearch): Promise<NativeSearchResult>;
  /** Does nothing until `next` is called. */
  beginSearch(search: NativeSearch): NativeSearchRun;
  /** Ids of the versions that match, ascending. */
  matching(matching: NativeMatching): Promise<Float64Array>;
  /** The number of token vectors of the live matching chunks. */
  tokenVectors(matching: NativeMatching): Promise<number>;
  /** Counts the documents that have each span, and the chunks that a search with it would score. */
  countSpans(counting: NativeSpanCounting): Promise<NativeSpanCounts>;
  /** Visible records (`recordsSeenSince`) whose values of the needed fields the engine does not know. */
  recordsWithoutValues(segmentId: number, generation: number, needed: NeededValues): Promise<SeenRecords>;
  /** Takes the metadata of these records, as compact JSON, and keeps the values of the needed fields. */
  addValues(
    segmentId: number,
    needed: NeededValues,
    records: Uint32Array,
    objects: readonly string[],
  ): Promise<void>;
  /** Saves the columns of these fields of a segment with codes. Does nothing for another segment, or for what is saved already. */
  saveValues(segmentId: number, needed: NeededValues): Promise<ColumnFiles>;
  /** Takes the values of the segment's records from the columns of all other open segments, and saves them. */
  copyValues(segmentId: number): Promise<ColumnFiles>;
  /** Forgets the columns of a segment. They are opened or read again when they are needed. */
  dropValues(segmentId: number): void;
  /**
   * Counts the values of fields over the documents that match. It pauses after some 5 ms. A call with what a paused one returned
   * goes on from there, on the same snapshot.
   */
  countValues(counting: NativeCounting, paused?: PausedCount['paused']): Promise<NativeCounts | PausedCount>;
  /** The value with this key (`ValueCounts.keys`) in the metadata of a document; `undefined` if it has none. */
  findValue(object: string, field: string, key: Uint8Array): string | undefined;
  /**
   * Reads a record again, past mapping and page cache. If it is intact searches use it again, and `damage` is ''.
   * `wholeSegment`: the directory or the length of the segment is wrong, not the record. Rejects with `io` when the disk
   * returns nothing.
   */
  verifyRecord(
    segmentId: number,
    record: number,
  ): Promise<{ readonly damage: string; readonly wholeSegment: boolean }>;
  segments(): readonly SegmentInfo[];
  close(): void;
}

export interface NativeEngine {
  readonly info: EngineInfo;
  /** The memory of all engines of this process. */
  memory(): EngineMemory;
  memoryOwners(): readonly EngineMemoryOwner[];
  /** `undefined` without a device. */
  device(): EngineDevice | undefined;
  createIndex(options: NativeIndexOptions): NativeIndex;
  /** Scores chunks that are in no index by exact MaxSim. */
  score(
    score: NativeScore,
    chunks: { readonly chunkRows: Uint32Array; readonly vectors: Int8Array; readonly scales: Uint16Array },
  ): Promise<NativeScoreResult>;
  /**
   * Reads a segment file without changing it, even while it is open. Rejects with `corrupt` or `unsupported_version` when the
   * header, the footer or a referenced record of an active segment cannot be read. Compares records from `firstRecord` on with
   * their checksums until `verifyBytesMax` bytes are read; 0 = none.
   */
  inspectSegment(
    path: string,
    options: {
      readonly recordsReferenced: number;
      readonly firstRecord: number;
      readonly verifyBytesMax: number;
    },
  ): Promise<SegmentInspection>;
  /**
   * Reads the header of a file of centroid codes and, if `verify`, compares its contents with their checksum. Rejects with
   * `unsupported_version` for another format.
   */
  inspectCodes(path: string, verify: boolean): Promise<CodesInspection>;
  /** Does the same for a file of postings. */
  inspectPostings(path: string, verify: boolean): Promise<PostingsInspection>;
  /** Does the same for a file of a column. */
  inspectColumn(path: string, verify: boolean): Promise<ColumnInspection>;
  close(): void;
}

/** Functions for tests and benchmarks alone. */
export interface NativeProbe {
  /** Calls into each kernel's own functions since the process started, which prove which kernel ran. */
  kernelCalls(): Readonly<Partial<Record<KernelName, number>>>;
  /** Times the bare kernel on one thread, over the chunks in the given order. Resolves to the fastest of `repeats` passes. */
  timeKernel(
    score: NativeScore,
    chunks: { readonly chunkRows: Uint32Array; readonly vectors: Int8Array; readonly scales: Uint16Array },
    order: Uint32Array,
    repeats: number,
  ): Promise<{ readonly wallMs: number; readonly cpuMs: number; readonly scores: Float32Array }>;
}

interface Addon {
  readonly Engine: new (options: EngineOptions) => NativeEngine & NativeProbe;
}

/** Loads the addon and starts an engine with its threads. `file`: benchmarks may take the addon of another build. */
export function createEngine(
  options: EngineOptions,
  file = builtFile('maxsimd.node'),
): NativeEngine & NativeProbe {
  const addon = createRequire(import.meta.url)(file) as Addon;
  return new addon.Engine(options);
}
