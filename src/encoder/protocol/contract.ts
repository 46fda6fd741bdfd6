/**
 * The interface of encoders for the service, in plain data. It is the one file between `service` and the gRPC client. Rows are
 * token vectors: a text of R rows at dimension D is R x D, row-major.
 */
import type { RowShape } from '../../contracts/row-shape.ts';
import type { TokenCut } from './token-cut.ts';
import type { GetStatisticsResponse } from './wire.ts';

export interface ChunkingParameters {
  readonly maxTokens: number;
  readonly overlapTokens: number;
  readonly minimumChunkTokens: number;
}

export interface EncoderModel extends RowShape {
  readonly name: string;
  readonly version: string;
  /** The most tokens of a text in a document window: the positions without those of special tokens. */
  readonly windowTokensMax: number;
  /** One row is stored for so many token vectors of a chunk. */
  readonly poolFactor: number;
}

export interface EncodeOptions {
  /** The model version of the index. No other version is used instead. */
  readonly model: Pick<EncoderModel, 'name' | 'version'>;
  /** Used for fairness between tenants only. */
  readonly tenantId: string;
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** The time that an encode spent in each stage, in milliseconds. */
export interface EncodeTimings {
  readonly tokenizeMs: number;
  readonly queueMs: number;
  readonly runMs: number;
  /** Making rows of what the model gave. */
  readonly rowsMs: number;
}

/** Where inference runs. `auto` falls back from CUDA to the CPU. */
export type Provider = 'auto' | 'cpu' | 'cuda';

/** Statistics that one encoder reports. Totals count from its start. */
export interface EncoderStatistics extends GetStatisticsResponse {
  readonly address: string;
}

export interface EncodedQuery {
  /** Why the model cannot encode this text. Then there are no rows and no tokens. */
  readonly problem?: string;
  /** Tokens of the whole text without special tokens. They are charged. */
  readonly inputTokens: number;
  readonly rows: number;
  /** f32 [rows x dim], multiplied by the query weights, not centred. */
  readonly vectors: Float32Array;
  /** f32 [rows]: the product of row i and the model's mean. Added to the row's similarities, it undoes the centring of documents. */
  readonly offsets: Float32Array;
  /** Where each row lies in the text. Only if it was asked for, and where an encoder can say. */
  readonly spans?: RowSpans;
  readonly timings: EncodeTimings;
}

/** u32 [rows] each, in UTF-16 units of the text. Start and end are equal for special tokens. */
export interface RowSpans {
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

export interface EncodedDocument {
  /** Position of the text in the call. */
  readonly documentIndex: number;
  /** Tokens of the whole text without special tokens. Overlaps count once. */
  readonly inputTokens: number;
  /** How many of them stand for text that the vocabulary does not have. Absent from encoders that do not count them. */
  readonly unknownTokens?: number;
  /** Why the model cannot encode this text. Then there are no chunks. */
  readonly problem?: string;
  /** u32 [chunks]: the rows of each chunk, in order. Empty when the text has no tokens. */
  readonly chunkRows: Uint32Array;
  /** sum(chunkRows) rows as they are stored: of 8 bits int8 [rows x dim], centred by the model's mean. */
  readonly vectors: Int8Array;
  /** IEEE half bits [sum(chunkRows)]; value = vector * scale. */
  readonly scales: Uint16Array;
  /** u32 [chunks x 3] and bytes: where chunks and rows lie in the text (`row-places.ts`). Absent where that is unknown. */
  readonly chunkRanges?: Uint32Array;
  readonly rowPlaces?: Uint8Array;
  readonly timings: EncodeTimings;
}

/** The text that token vectors were made of: a query, or a chunk of a document. */
export type LocatedText =
  | { readonly text: string }
  | { readonly text: string; readonly chunking: ChunkingParameters; readonly chunkIndex: number };

/** The spans of tokens. Pooled rows are not known here. */
export interface TokenSpans extends RowSpans {
  /** Why the tokens cannot be located. Then there are no spans. */
  readonly problem?: string;
}

export interface EncodeQueryOptions extends EncodeOptions {
  /** The caller wants the spans of the rows. */
  readonly located?: boolean;
}

export interface EncodeDocumentsOptions extends EncodeOptions {
  readonly chunking: ChunkingParameters;
  /** Long texts are cut. Absent = they are encoded whole. */
  readonly cut?: TokenCut;
  /**
   * Called once with the tokens of each text, before any inference. The work waits for it, and its rejection ends the call. The
   * allowance is reserved here. `wholeTokens`: the tokens of the texts before any
   * cut, of a text that is cut perhaps fewer, but more than it keeps.
   */
  readonly onTokenCounts: (
    inputTokens: readonly number[],
    wholeTokens: readonly number[],
  ) => Promise<void> | void;
  /** Called when the caller leaves, with the tokens that were run of documents that were not yielded. */
  readonly onLeft?: (inputTokens: number) => void;
}

/**
 * Calls reject with `service_unavailable` and `retryAfterSeconds` (no encoder, version not loaded, deadline passed, queue full),
 * or with the reason of the signal when the caller has gone.
 */
export interface EncoderPool {
  /** The models that are served now; empty while no encoder is up. */
  models(): readonly EncoderModel[];
  /** The names of the models that a request may name. */
  modelNames(): Promise<readonly string[]>;
  /** Whether every encoder that serves this model now runs it on a GPU. */
  runsOnGpu(model: EncodeOptions['model']): boolean;
  ready(): boolean;
  /**
   * Resolves to the model in this version (absent = any) as soon as an encoder serves it. Waits for a few seconds, but not past
   * the deadline, and then rejects with `service_unavailable`. Undefined when there is no such model.
   */
  awaitModel(
    wanted: { readonly name: string; readonly version?: string | undefined },
    options: Pick<EncodeOptions, 'deadlineMs' | 'signal'>,
  ): Promise<EncoderModel | undefined>;
  countTokens(texts: readonly string[], options: EncodeOptions): Promise<readonly number[]>;
  /** Finds the part of a text that each of its token vectors comes from. */
  locateTokens(located: LocatedText, options: EncodeOptions): Promise<TokenSpans>;
  encodeQuery(text: string, options: EncodeQueryOptions): Promise<EncodedQuery>;
  /** Yields whole documents, in any order, each exactly once. The bytes in flight are bounded. */
  encodeDocuments(texts: readonly string[], options: EncodeDocumentsOptions): AsyncIterable<EncodedDocument>;
  /** Statistics of the encoders that are in use and answer at once. */
  statistics(): Promise<readonly EncoderStatistics[]>;
  close(): Promise<void>;
}
