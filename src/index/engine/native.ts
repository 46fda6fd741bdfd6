/**
 * The addon's types and its only importer. Everything asynchronous runs on the addon's own threads.
 * Errors are `Error`s with a `code`: `invalid_argument`, `closed`, `io` (with `errno`), `no_space`,
 * `no_memory`, `corrupt`, `unsupported_version`, `deadline_exceeded`, `values_missing`, `absent`. Those of a record that could not be read (`io`) or is not
 * what was written (`corrupt`) name it: `segmentId`, `record`. What needs bytes of a segment that have not come yet fails with
 * `absent`, `segmentIds` and `parts`, and may be tried again once they are there.
 *
 * Handles are closed explicitly (`close()` is idempotent and waits for nothing: work in flight keeps
 * what it reads alive and settles normally); garbage collection is only a backstop. Every method of a
 * closed handle throws `closed`. A bad argument throws `invalid_argument` at the call, before anything is
 * started; what goes wrong on the addon's threads rejects.
 */
import { createRequire } from 'node:module';
import { builtFile } from '../../installation.ts';

export type KernelName = 'scalar' | 'avx2' | 'avxvnni' | 'avx512vnni' | 'amx' | 'neon';

export interface EngineOptions {
  /** Worker threads; 0 = one per core. */
  readonly threads: number;
  /** A forced kernel that this machine lacks is an error, never a silent fall-back. */
  readonly kernel: KernelName | 'auto';
  /** Scores segments that lie in its memory; one that cannot be opened is an error. */
  readonly device?: EngineDeviceOptions;
  /** What all engines of this process may keep in memory for their indexes; absent = as it was, at first unbounded. */
  readonly memoryBytes?: number;
}

export interface EngineDeviceOptions {
  /** Path of the library that drives it (native/device/library.h). */
  readonly driver: string;
  readonly ordinal: number;
  /** For token matrices; 0 = half of what it has. */
  readonly memoryBytes: number;
}

export interface EngineDevice {
  readonly name: string;
  readonly mostBytes: number;
  /** Bytes of the segments that lie there, and their number. */
  readonly bytes: number;
  readonly segments: number;
  /** Segments that are on their way there. */
  readonly coming: number;
  /** Segments that searches scored there. */
  readonly scored: number;
  /** Why the last segment that could not be copied there was not; '' = none. */
  readonly refusal: string;
  /** Why the last search of it failed; '' = it did not. It is left alone for a minute then. */
  readonly failure: string;
}

export interface EngineMemory {
  readonly mostBytes: number;
  /** Directories, codebooks and what builds work with. */
  readonly takenBytes: number;
  /** Codes of open indexes, and those of them that the page cache may not let go of. */
  readonly codesBytes: number;
  readonly heldBytes: number;
}

export interface EngineInfo {
  readonly kernel: KernelName;
  /** In order of preference, with what this machine supports. */
  readonly kernels: readonly { readonly name: KernelName; readonly supported: boolean }[];
  readonly threads: number;
}

export interface NativeIndexOptions {
  readonly dim: number;
  /** Token vectors that a search may scan exactly; above it candidates come from codes. 0 = from the measured kernel rate and a budget of 2 ms. */
  readonly exactTokenVectorsMax: number;
}

/** One document version: its chunks' token matrices, appended whole. */
export interface NativeRecord {
  readonly versionId: number;
  /** Rows of each chunk, in chunk_index order; at least one chunk, every chunk at least one row. */
  readonly chunkRows: Uint32Array;
  /** int8 [rows x dim]. */
  readonly vectors: Int8Array;
  /** f16 bits [rows]. */
  readonly scales: Uint16Array;
  /** 16-byte hashes of (field, canonical JSON value), concatenated: what filters match. */
  readonly terms: Uint8Array;
}

export interface SegmentInfo {
  readonly segmentId: number;
  readonly state: 'active' | 'sealed';
  readonly records: number;
  readonly recordsLive: number;
  readonly chunks: number;
  readonly tokenVectors: number;
  /** Bytes of the terms of all records. */
  readonly termBytes: number;
  readonly fileBytes: number;
  /** Bytes of the files with its centroid codes and postings; a codebook shared by segments counts with the first of them. */
  readonly derivedBytes: number;
  /** Size of the file of postings; 0 = none that can be used, filters read its records: `buildPostings`. */
  readonly postingBytes: number;
  /** Size of the codebook; 0 = no codes yet, its chunks are scored exactly. */
  readonly centroids: number;
  /** Name of the codebook's file, in the segment's folder; '' = none. */
  readonly codebook: string;
  /** They were made with an older codebook than the index has now: `buildCodes` again. */
  readonly codesOutdated: boolean;
}

export interface CodesBuilt {
  readonly chunks: number;
  readonly bytes: number;
  readonly centroids: number;
  /** A new codebook was fitted: codes of other segments are outdated now. */
  readonly fitted: boolean;
  readonly milliseconds: number;
}

/** Columns: entry i says that record `records[i]` of segment `segmentIds[i]` is born / dies at a generation (0 = alive). */
export interface LifespanColumns {
  readonly segmentIds: Float64Array;
  readonly records: Uint32Array;
}

/** What a snapshot holds of documents with certain metadata. */
export interface NativeMatching {
  /** All must match; 16 bytes each. Absent = no filter. */
  readonly filterTerms?: Uint8Array;
  /**
   * A condition (`conditionOf`) that must be met, too. Rejects with `values_missing` where values that it compares are
   * not known: `recordsWithoutValues`.
   */
  readonly where?: Uint8Array;
  /** Snapshot: versions with born <= generation < died. */
  readonly generation: number;
  /** Milliseconds from now; past it the call rejects with `deadline_exceeded`. */
  readonly timeoutMs: number;
}

export interface NativeSearch extends NativeMatching {
  /** f32 [rows x dim]. */
  readonly query: Float32Array;
  /** f32 [rows]; added per query token. */
  readonly offsets: Float32Array;
  readonly topK: number;
  readonly candidateK: number;
  readonly components: boolean;
  /** `topK` counts documents: those whose best chunks are best, each with up to ten of its own. */
  readonly grouped?: boolean;
  /** `exact` scans every live matching chunk (evaluation and tests); default `auto`. */
  readonly plan?: 'auto' | 'exact' | 'codes' | 'lists';
}

/**
 * Best first, `topK` at most: by score, then the older document version (the smaller id), then by chunk index. Of a grouped
 * search document by document.
 */
export interface NativeSearchResult {
  readonly versionIds: Float64Array;
  readonly chunkIndexes: Uint32Array;
  readonly scores: Float32Array;
  /** Chunks scored exactly. */
  readonly candidateCount: number;
  /** Present when candidates were preselected and components asked for. */
  readonly candidateScores?: Float32Array;
  readonly candidateRanks?: Uint32Array;
  /** Present when components were asked for: [results x query rows]. */
  readonly similarities?: Float32Array;
  readonly documentTokens?: Uint32Array;
  readonly plan: 'exact' | 'codes' | 'lists' | 'device';
  /** Codes could not be read and were not used: they are to be built anew. */
  readonly codesLost: boolean;
  /** Milliseconds by stage. */
  readonly timings: {
    readonly queueMs: number;
    readonly filterMs: number;
    readonly candidatesMs: number;
    readonly exactMs: number;
  };
}

export interface NativeScore {
  readonly query: Float32Array;
  readonly offsets: Float32Array;
  readonly dim: number;
  readonly components: boolean;
}

export interface NativeScoreResult {
  /** One per chunk, in the order given. */
  readonly scores: Float32Array;
  readonly similarities?: Float32Array;
  readonly documentTokens?: Uint32Array;
}

export interface SeenRecords {
  readonly records: Uint32Array;
  readonly versionIds: Float64Array;
}

export interface NativeIndex {
  /** New empty active segment; file and directory entry are durable when it resolves. */
  createSegment(segmentId: number, path: string): Promise<void>;
  /**
   * Maps an existing segment. `recordsReferenced` = how many leading records the catalog may reference:
   * an active file is cut behind them (torn tail). A bad checksum among them rejects `loadLifespans` with `corrupt` if a
   * version that is alive lies there.
   * A sealed file's footer is verified now, its records on first touch or by `verifyRecord`.
   * `sealed`: the catalog knows it as that; `corrupt` where it has no footer. An active file may turn out to be sealed.
   * `partial`, of a sealed one: its file, at its full length, is being fetched to another path; what is derived from it lies
   * beside `path`. `parts` has a bit for each part that has come, the first in the lowest bit of the first byte.
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
  /** These parts of a segment that was opened as `partial` have come, too. */
  addParts(segmentId: number, parts: Uint8Array): void;
  /** Writes one record (not yet durable, not yet visible); resolves to its number in the segment. */
  append(segmentId: number, record: NativeRecord): Promise<{ readonly record: number }>;
  /** fdatasync, shared by callers that wait at the same time. After a failure the segment refuses every later append. */
  sync(segmentId: number): Promise<void>;
  /** Writes postings and footer, syncs; the segment is immutable from now on. */
  seal(segmentId: number): Promise<SegmentInfo>;
  /** Builds and saves the centroid codes of a sealed segment in the background, then uses them. */
  buildCodes(segmentId: number): Promise<CodesBuilt>;
  /** Saves what filters of a sealed segment look up in the background, from its records, then uses it. */
  buildPostings(segmentId: number): Promise<void>;
  /** Copies records into another (active) segment for a merge; returns their new numbers in order. */
  copyRecords(fromSegmentId: number, records: Uint32Array, toSegmentId: number): Promise<Uint32Array>;
  /** One record as it was appended. */
  readRecord(segmentId: number, record: number): Promise<NativeRecord>;
  /** No search that starts later reads it; unmapped after the last reader. */
  dropSegment(segmentId: number): void;
  /** Loads lifespans in bulk at open. */
  loadLifespans(
    columns: LifespanColumns & {
      readonly versionIds: Float64Array;
      readonly born: Float64Array;
      readonly died: Float64Array;
    },
  ): void;
  /** Record `first + i` gets the lifespan of `records[i]`, of which it is a copy. */
  copyLifespans(fromSegmentId: number, records: Uint32Array, toSegmentId: number, first: number): void;
  /** Records that a reader at `generation` or later may see, ascending. */
  recordsSeenSince(segmentId: number, generation: number): SeenRecords;
  /** Makes a commit visible. Generations are published in order. */
  publish(generation: number, born: LifespanColumns, died: LifespanColumns): void;
  search(search: NativeSearch): Promise<NativeSearchResult>;
  /** Ids of the versions that match, ascending. */
  matching(matching: NativeMatching): Promise<Float64Array>;
  /** Records that a reader at `generation` or later may see and whose values the ranges of a condition cannot be compared with. */
  recordsWithoutValues(segmentId: number, generation: number, where: Uint8Array): Promise<SeenRecords>;
  /** Metadata of these records, as compact JSON: what the ranges of `where` ask for is kept in memory. */
  addValues(
    segmentId: number,
    where: Uint8Array,
    records: Uint32Array,
    objects: readonly string[],
  ): Promise<void>;
  /**
   * Reads one record again, past mapping and page cache; searches use it again if it is intact. `damage` is '' if
   * nothing is wrong; `wholeSegment`: not with the record but with the segment's directory or length. Rejects with `io`
   * where the disk gives nothing at all.
   */
  verifyRecord(
    segmentId: number,
    record: number,
  ): Promise<{ readonly damage: string; readonly wholeSegment: boolean }>;
  segments(): readonly SegmentInfo[];
  close(): void;
}

/** What a segment file holds, read without changing it. */
export interface SegmentInspection {
  readonly segmentId: number;
  readonly dim: number;
  readonly state: 'active' | 'sealed';
  readonly fileBytes: number;
  readonly records: number;
  readonly chunks: number;
  readonly tokenVectors: number;
  /** Records with headers and padding; directory. The rest is file header, trailer, space kept ready. */
  readonly recordBytes: number;
  readonly directoryBytes: number;
  readonly recordsVerified: number;
  readonly damaged: readonly { readonly record: number; readonly what: string }[];
  /** One for each record. */
  readonly versionIds: Float64Array;
}

export interface CodesInspection {
  readonly centroids: number;
  /** Summed over all chunks. */
  readonly codes: number;
  /** '' = nothing is wrong. */
  readonly damage: string;
}

export interface PostingsInspection {
  readonly terms: number;
  /** Summed over all terms. */
  readonly postings: number;
  /** '' = nothing is wrong. */
  readonly damage: string;
}

export interface NativeEngine {
  readonly info: EngineInfo;
  /** What all engines of this process have. */
  memory(): EngineMemory;
  /** Undefined without one. */
  device(): EngineDevice | undefined;
  createIndex(options: NativeIndexOptions): NativeIndex;
  /** Exact MaxSim of transient chunks. */
  score(
    score: NativeScore,
    chunks: { readonly chunkRows: Uint32Array; readonly vectors: Int8Array; readonly scales: Uint16Array },
  ): Promise<NativeScoreResult>;
  /**
   * Reads a segment file as it lies there, beside whoever has it open. Rejects with `corrupt` or
   * `unsupported_version` when header, footer or a referenced record of an active segment cannot be read.
   * Records from `firstRecord` on are compared with their checksums until `verifyBytesMax` bytes are read; 0 = none.
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
   * A file of centroid codes by its header and, if `verify`, by the checksum of its contents. Rejects with
   * `unsupported_version` for another format.
   */
  inspectCodes(path: string, verify: boolean): Promise<CodesInspection>;
  /** The same for a file of postings. */
  inspectPostings(path: string, verify: boolean): Promise<PostingsInspection>;
  close(): void;
}

/** What tests and benchmarks ask of an engine beyond its use. */
export interface NativeProbe {
  /**
   * Calls into each kernel's own functions since the process started: proof of which kernel ran.
   */
  kernelCalls(): Readonly<Partial<Record<KernelName, number>>>;
  /**
   * The bare kernel on one thread, over the chunks in the given order: the fastest of `repeats` passes.
   */
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

/** Loads the addon, which benchmarks may take from another build, and starts an engine with its threads. */
export function createEngine(
  options: EngineOptions,
  file = builtFile('maxsimd.node'),
): NativeEngine & NativeProbe {
  const addon = createRequire(import.meta.url)(file) as Addon;
  return new addon.Engine(options);
}
