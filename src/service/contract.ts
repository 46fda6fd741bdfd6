/**
 * What the HTTP layer asks of the service, in plain data. Names are ours (camelCase); the HTTP layer
 * maps them to the wire. Every failure is a `ServiceError`.
 */
import type {
  DocumentCount,
  DocumentPage,
  IndexPlace,
  IndexRow,
  KeyAccess,
  Page,
  StoredDocument,
  Tenant,
  UsageDay,
} from '../catalog/contract.ts';
import type { RateState } from '../errors.ts';
import type { ConcurrencyPermit } from './limits/limiter.ts';
import type { StageTimings } from './stage-timings.ts';

/** Results of a search that does not say. */
export const topKDefault = 10;
/** Chunks of a search that are scored exactly, at most. */
export const candidateKMax = 500;

/** Chunks of a document in a grouped result (native/search/search.h). */
export const chunksOfDocumentMax = 10;

/** Travels down with one request; stage timings flow back up in `timings`. */
export interface RequestContext {
  readonly requestId: string;
  readonly tenant: Tenant;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  /** Absolute, milliseconds since the epoch. */
  readonly deadlineMs: number;
  readonly startedAtMs: number;
  readonly timings: StageTimings;
  /** What the encoder has run for it so far: charged when the caller leaves before the answer. */
  readonly spent: { inputTokens: number };
}

export interface AdmittedRequest {
  readonly tenant: Tenant;
  /** What the key may do. */
  readonly access: KeyAccess;
  readonly rate: RateState;
  /** Release when the response is closed and the request's work has ended. */
  readonly permit: ConcurrencyPermit;
}

/**
 * A JSON object of the customer's as text without white space between tokens: checked by whoever takes it in,
 * stored and returned as it is.
 */
export type JsonObjectText = string;

export interface DocumentInput {
  readonly docId: string;
  readonly text: string;
  readonly metadata: JsonObjectText;
}

export interface RequestUsage {
  readonly inputTokens: number;
  readonly documentCount: number;
  readonly chunkCount: number;
  readonly candidateCount: number;
  readonly latencyMs: number;
}

export interface CreateIndexRequest {
  readonly name: string;
  readonly model?: string | undefined;
  /** Absent = the default version of the default model, the newest of another. */
  readonly modelVersion?: string | undefined;
  readonly chunking?:
    | {
        readonly maxTokens?: number | undefined;
        readonly overlapTokens?: number | undefined;
        readonly minimumChunkTokens?: number | undefined;
      }
    | undefined;
  readonly metadataSchema: JsonObjectText;
}

export interface SearchRequest {
  readonly query: string;
  readonly topK?: number | undefined;
  readonly candidateK?: number | undefined;
  readonly filter?: JsonObjectText | undefined;
  readonly returnComponents: boolean;
}

/** One of the searches of a request that has several. */
export interface QueryRequest extends SearchRequest {
  readonly where?: JsonObjectText | undefined;
  /** `topK` counts documents. */
  readonly groupByDocument: boolean;
}

export interface DeleteMatchingRequest {
  readonly filter?: JsonObjectText | undefined;
  readonly where?: JsonObjectText | undefined;
  readonly limit: number;
}

export interface DeletedMatching {
  readonly deleted: number;
  /** Others match that are left. */
  readonly more: boolean;
}

export interface ScoreRequest {
  readonly query: string;
  readonly documents: readonly DocumentInput[];
  readonly returnComponents: boolean;
}

export interface ResultComponents {
  readonly maxsim: number;
  /** For each query token, its best similarity in the chunk and the token of the chunk that has it. */
  readonly similarities: Float32Array;
  readonly documentTokens: Uint32Array;
  readonly candidateScore?: number;
  readonly candidateRank?: number;
}

export interface ResultItem {
  readonly docId: string;
  readonly chunkId: string;
  readonly chunkIndex: number;
  readonly score: number;
  readonly metadata: JsonObjectText;
  readonly components?: ResultComponents;
}

export interface IndexPage {
  readonly indexes: readonly IndexRow[];
  readonly hasMore: boolean;
}

export interface UnknownTokens {
  readonly docId: string;
  /** More than none, of `inputTokens`. */
  readonly unknownTokens: number;
  readonly inputTokens: number;
}

export interface UpsertResponse {
  readonly indexId: string;
  readonly upsertedDocuments: number;
  readonly upsertedChunks: number;
  readonly failed: readonly { readonly docId: string; readonly error: string }[];
  /** Upserted documents with text that the model does not know. */
  readonly unknownTokens: readonly UnknownTokens[];
  readonly usage: RequestUsage;
}

export interface RankedResponse {
  readonly results: readonly ResultItem[];
  readonly usage: RequestUsage;
}

/** A document with those of its chunks that match best, best first. */
export interface DocumentResult {
  readonly docId: string;
  readonly metadata: JsonObjectText;
  readonly chunks: readonly ResultItem[];
}

/** Chunks, or documents where they were asked for. */
export type QueryAnswer =
  | RankedResponse
  | { readonly documents: readonly DocumentResult[]; readonly usage: RequestUsage };

export interface QueryResponse {
  /** In the order of the queries. */
  readonly results: readonly QueryAnswer[];
  readonly usage: RequestUsage;
}

export interface UsageSummary {
  readonly periodStartMs: number;
  readonly periodEndMs: number;
  readonly usage: {
    readonly inputTokens: bigint;
    readonly requests: number;
    readonly documentUpserts: number;
    readonly searches: number;
    readonly scores: number;
    readonly documents: number;
  };
  readonly limits: {
    readonly inputTokens: bigint;
    readonly documents: number;
    readonly requestsPerMinute: number;
    readonly maxConcurrentRequests: number;
  };
  readonly remaining: { readonly inputTokens: bigint; readonly documents: number };
}

export interface IndexDescription {
  readonly documents: number;
  readonly segments: readonly {
    readonly state: 'active' | 'sealed';
    /** Live ones. */
    readonly documents: number;
    readonly records: number;
    readonly chunks: number;
    readonly tokenVectors: number;
    readonly bytes: number;
    readonly derivedBytes: number;
    /** Size of the codebook that candidates come from; 0 = its chunks are scored exactly. */
    readonly centroids: number;
  }[];
}

/** A text whose tokens are to be found again: a query, or a chunk of a document. Nothing of it is kept. */
export interface LocateRequest {
  /** Whose model and chunking hold; absent: those of a transient score. */
  readonly indexId?: string | undefined;
  readonly query: string;
  readonly document?: { readonly text: string; readonly chunkIndex: number } | undefined;
}

/** In the order of token indexes: start and end of each in UTF-16 units; equal for tokens that are no text. */
export type TokenSpanList = readonly (readonly [start: number, end: number])[];

export interface LocatedTokens {
  /** `undefined` where the model's tokenizer cannot say. */
  readonly query: TokenSpanList | undefined;
  /** Likewise where the document has no such chunk, or none was given. */
  readonly document: TokenSpanList | undefined;
}

export interface Readiness {
  readonly ready: boolean;
  /** By part: `ok`, `degraded: ` and how, or what is wrong, in a few words fit for the public. */
  readonly checks: Readonly<Record<'catalog' | 'encoder' | 'disk' | 'draining', string>> & {
    /** The object store; of a node alone. */
    readonly objects?: string;
    /** What limits are counted with; of a node alone, and never a reason not to be ready. */
    readonly limiter?: string;
  };
}

export interface Service {
  /** Key -> tenant (401, 403), then rate (429), then concurrency (429). `authorization` is the raw header value. */
  admit(authorization: string | undefined): Promise<AdmittedRequest>;
  /** Likewise, by a session in place of a key. */
  admitSession(session: string | undefined): Promise<AdmittedRequest>;
  /** A session of the key that is authorized (401). */
  openSession(authorization: string | undefined): Promise<string>;
  /** Signs out, on every node. */
  endSession(session: string | undefined): Promise<void>;
  createIndex(context: RequestContext, request: CreateIndexRequest): Promise<IndexRow>;
  listIndexes(context: RequestContext): Promise<readonly IndexRow[]>;
  listIndexPage(context: RequestContext, page: Page<IndexPlace>): Promise<IndexPage>;
  getIndex(context: RequestContext, indexId: string): Promise<IndexRow>;
  renameIndex(context: RequestContext, indexId: string, name: string): Promise<IndexRow>;
  /** Returns the first of them, with the name of the other. */
  swapIndexNames(context: RequestContext, indexId: string, otherId: string): Promise<IndexRow>;
  describeIndex(context: RequestContext, indexId: string): Promise<IndexDescription>;
  deleteIndex(context: RequestContext, indexId: string): Promise<boolean>;
  upsertDocuments(
    context: RequestContext,
    indexId: string,
    documents: readonly DocumentInput[],
  ): Promise<UpsertResponse>;
  deleteDocument(context: RequestContext, indexId: string, docId: string): Promise<boolean>;
  deleteMatching(
    context: RequestContext,
    indexId: string,
    request: DeleteMatchingRequest,
  ): Promise<DeletedMatching>;
  /** By the bytes of their ids. */
  listDocuments(context: RequestContext, indexId: string, page: Page<string>): Promise<DocumentPage>;
  getDocument(context: RequestContext, indexId: string, docId: string): Promise<StoredDocument>;
  countDocuments(context: RequestContext, indexId: string): Promise<DocumentCount>;
  /** A new version of the document with the token vectors that it has. */
  updateMetadata(
    context: RequestContext,
    indexId: string,
    docId: string,
    metadata: JsonObjectText,
  ): Promise<StoredDocument>;
  search(context: RequestContext, indexId: string, request: SearchRequest): Promise<RankedResponse>;
  query(context: RequestContext, indexId: string, queries: readonly QueryRequest[]): Promise<QueryResponse>;
  score(context: RequestContext, request: ScoreRequest): Promise<RankedResponse>;
  locateTokens(context: RequestContext, request: LocateRequest): Promise<LocatedTokens>;
  usage(context: RequestContext): Promise<UsageSummary>;
  /** Days in UTC, `YYYY-MM-DD`, both included. */
  usageDays(context: RequestContext, from: string, to: string): Promise<readonly UsageDay[]>;
  /**
   * Counts a `/v1` request in the ledger before its answer leaves, unless the operation's own commit
   * already did (upsert, delete, search and score count theirs; the context remembers it).
   */
  countRequest(context: RequestContext): Promise<void>;
  /** Charges a request whose caller has left what was run for it. */
  countLeft(context: RequestContext): Promise<void>;
  readiness(): Promise<Readiness>;
  /** Stop admitting (503), wait for the work in flight, close everything below. */
  drain(): Promise<void>;
}
