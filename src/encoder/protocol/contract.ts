/**
 * What the service asks of an encoder, in plain data: the one file between `service` and the gRPC
 * client. Rows are token vectors; a text of R rows at dimension D is R x D row-major.
 */
import type { GetStatisticsResponse } from './wire.ts';

export interface ChunkingParameters {
  readonly maxTokens: number;
  readonly overlapTokens: number;
  readonly minimumChunkTokens: number;
}

export interface EncoderModel {
  readonly name: string;
  readonly version: string;
  readonly dim: number;
  /** Most content tokens of one document window (positions less special tokens). */
  readonly windowTokensMax: number;
}

export interface EncodeOptions {
  /** In the immutable version of the index; another version is never used in its place. */
  readonly model: Pick<EncoderModel, 'name' | 'version'>;
  /** Opaque; used for fairness between tenants only. */
  readonly tenantId: string;
  /** Absolute, milliseconds since the epoch. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** Where the time of an encode went, in milliseconds. */
export interface EncodeTimings {
  readonly tokenizeMs: number;
  readonly queueMs: number;
  readonly runMs: number;
}

/** Where inference runs; `auto` falls back from CUDA to the CPU. */
export type Provider = 'auto' | 'cpu' | 'cuda';

/** What one encoder tells of itself; totals count from its start. */
export interface EncoderStatistics extends GetStatisticsResponse {
  readonly address: string;
}

export interface EncodedQuery {
  /** Why this text could not be encoded though the encoder works; such a query has no rows and no tokens. */
  readonly problem?: string;
  /** Tokenizer tokens of the whole text, special tokens excluded (what is charged). */
  readonly inputTokens: number;
  readonly rows: number;
  /** f32 [rows x dim], query weights folded in, not centred. */
  readonly vectors: Float32Array;
  /** f32 [rows]: q_i . mu, added to row i's similarity so that centred documents score as uncentred ones. */
  readonly offsets: Float32Array;
  readonly timings: EncodeTimings;
}

export interface EncodedDocument {
  /** Position of the text in the call. */
  readonly documentIndex: number;
  /** Tokenizer tokens of the whole text, overlaps counted once, special tokens excluded. */
  readonly inputTokens: number;
  /** How many of these stand for text that the model does not know; absent from encoders that do not count them. */
  readonly unknownTokens?: number;
  /** Why this text could not be encoded though the encoder works; such a document has no chunks. */
  readonly problem?: string;
  /** Rows of each chunk, in order; empty when the text has no tokens at all. */
  readonly chunkRows: Uint32Array;
  /** int8 [sum(chunkRows) x dim], centred by the model's mean. */
  readonly vectors: Int8Array;
  /** IEEE half bits [sum(chunkRows)]; value = vector * scale. */
  readonly scales: Uint16Array;
  readonly timings: EncodeTimings;
}

/** Which text token vectors are of: a query, or a chunk of a document. */
export type LocatedText =
  | { readonly text: string }
  | { readonly text: string; readonly chunking: ChunkingParameters; readonly chunkIndex: number };

export interface TokenSpans {
  /** Why they cannot be located; then there are none. */
  readonly problem?: string;
  /** u32 [rows], in UTF-16 units of the text; equal where a token vector is of no text (special tokens). */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

export interface EncodeDocumentsOptions extends EncodeOptions {
  readonly chunking: ChunkingParameters;
  /**
   * Called once with the tokens of every text before any inference; the work waits for it, and a
   * rejection ends the call with that rejection (this is where the allowance is reserved).
   */
  readonly onTokenCounts: (inputTokens: readonly number[]) => Promise<void> | void;
  /** Called when the caller leaves: tokens of documents that were run in part. Whole documents were yielded. */
  readonly onLeft?: (inputTokens: number) => void;
}

/**
 * Errors are `ServiceError`s: `service_unavailable` (no encoder, version not loaded, deadline passed,
 * queue full, with `retryAfterSeconds`) or the signal's reason when the caller has gone.
 */
export interface EncoderPool {
  /** Models the pool serves now; empty while none is up. */
  models(): readonly EncoderModel[];
  ready(): boolean;
  /**
   * The model in this version (absent = any), as soon as an encoder serves it. Waits a short bounded time, not past
   * the deadline; then it is `service_unavailable`, which says why. Undefined: there is no such model.
   */
  awaitModel(
    wanted: { readonly name: string; readonly version?: string | undefined },
    options: Pick<EncodeOptions, 'deadlineMs' | 'signal'>,
  ): Promise<EncoderModel | undefined>;
  countTokens(texts: readonly string[], options: EncodeOptions): Promise<readonly number[]>;
  /** Where the tokens of a text lie that its token vectors are of. */
  locateTokens(located: LocatedText, options: EncodeOptions): Promise<TokenSpans>;
  encodeQuery(text: string, options: EncodeOptions): Promise<EncodedQuery>;
  /** Yields whole documents, in any order, each exactly once; bounded bytes in flight. */
  encodeDocuments(texts: readonly string[], options: EncodeDocumentsOptions): AsyncIterable<EncodedDocument>;
  /** Reports on the encoders that are in use and answer at once. */
  statistics(): Promise<readonly EncoderStatistics[]>;
  close(): Promise<void>;
}
