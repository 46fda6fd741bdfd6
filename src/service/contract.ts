/** The service as the HTTP layer calls it, with plain data. Every failure is a `ServiceError`. */
import type {
  DocumentCount,
  DocumentPage,
  IndexChange,
  IndexPlace,
  IndexRow,
  KeyAccess,
  Page,
  StoredDocument,
  Tenant,
  TenantLimits,
  UsageDay,
  UsageTotals,
} from '../catalog/contract.ts';
import type { RateState } from '../errors.ts';
import type { RecallReport } from '../index/recall/index-recall.ts';
import type { ConcurrencyPermit } from './limits/limiter.ts';
import type { StageTimings } from './stage-timings.ts';

/** UTF-8 bytes of metadata, a metadata schema or a filter, serialised without white space. */
export const metadataBytesMax = 16 * 1024;
/** Results of a search without `top_k`. */
export const topKDefault = 10;
export const candidateKMax = 500;
/** Code points of a passage. */
export const passagePointsMax = 4096;

/** A grouped result has at most this many chunks of a document (native/search/search.h). */
export const chunksOfDocumentMax = 10;

/** The weight of a search with match fields. */
export const matchWeightDefault = 0.5;
export const matchWeightMax = 10;

/** Goes down with one request. Operations note the times of their stages in `timings`. */
export interface RequestContext {
  readonly requestId: string;
  readonly tenant: Tenant;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
  readonly startedAtMs: number;
  readonly timings: StageTimings;
  /**
   * Tokens that the encoder has run for it so far, and documents that it has committed. The tokens are charged when the caller
   * leaves before the answer. `isCharged`: an operation counts the request with its usage.
   */
  readonly spent: { inputTokens: number; documents: number; isCharged?: true };
}

export interface AdmittedRequest {
  readonly tenant: Tenant;
  readonly access: KeyAccess;
  readonly rate: RateState;
  /** To be released when the response is closed and the work of the request has ended. */
  readonly permit: ConcurrencyPermit;
}

/** A JSON object of the customer, as text without white space between tokens, checked by the HTTP layer. */
export type JsonObjectText = string;

export interface DocumentInput {
  readonly docId: string;
  readonly text: string;
  readonly metadata: JsonObjectText;
}

export interface DocumentExpiry {
  /** Milliseconds since the epoch. Absent = never. */
  readonly expiresAtMs?: number;
}

/** An absent field stays as it is. */
export interface DocumentChange {
  /** Replaces the stored metadata. */
  readonly metadata?: JsonObjectText | undefined;
  /** Is merged into the stored metadata (RFC 7396). At most one of the two is given. */
  readonly metadataMerge?: JsonObjectText | undefined;
  /** Null = it does not expire any more. */
  readonly expiresAtMs?: number | null | undefined;
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
  /** Absent = the configured version of the default model, or else the newest that every node serves. */
  readonly modelVersion?: string | undefined;
  readonly chunking?:
    | {
        readonly maxTokens?: number | undefined;
        readonly overlapTokens?: number | undefined;
        readonly minimumChunkTokens?: number | undefined;
      }
    | undefined;
  /** Absent = `{}`. */
  readonly metadataSchema?: JsonObjectText | undefined;
  /** Names or paths of metadata fields, each once. Absent = none. */
  readonly matchFields?: readonly string[] | undefined;
  /** An index that has the name already is the answer, if it agrees with every field that is given. */
  readonly returnsExisting?: boolean | undefined;
}

export interface CreatedIndex extends IndexRow {
  /** False = it existed. */
  readonly isNew: boolean;
}

export interface SearchRequest {
  readonly query: string;
  readonly topK?: number | undefined;
  /** So many of the best are left out before these. */
  readonly offset?: number | undefined;
  readonly candidateK?: number | undefined;
  readonly filter?: JsonObjectText | undefined;
  readonly where?: JsonObjectText | undefined;
  /** `topK` and `offset` count documents. */
  readonly groupByDocument?: boolean | undefined;
  /** Every live matching chunk is scored. */
  readonly exact?: boolean | undefined;
  /** Results with a lower normalised score are left out. */
  readonly minScore?: number | undefined;
  readonly returnComponents: boolean;
  /** Fields of the metadata in the answer, also by their paths; absent = all. */
  readonly fields?: readonly string[] | undefined;
  /** Each chunk has the passage that was found. */
  readonly passage?: WantedPassage | undefined;
  /** How words of the query match metadata values as a whole; false = they do not. Absent = all match fields of the index. */
  readonly match?: false | MatchOptions | undefined;
}

export interface MatchOptions {
  /** Match fields of the index. Absent = all. */
  readonly fields?: readonly string[] | undefined;
  /** Absent = `matchWeightDefault`. */
  readonly weight?: number | undefined;
}

export interface WantedPassage {
  /** The metadata field that holds the text. */
  readonly from: string;
  /** Code points before and after the chunk. */
  readonly context: number;
}

export interface DocumentListRequest extends Page<string> {
  readonly where?: JsonObjectText | undefined;
  /** Fields of the metadata in the answer, also by their paths; absent = all. */
  readonly fields?: readonly string[] | undefined;
}

export interface ListedDocuments extends DocumentPage {
  readonly hint?: string;
}

export interface DeleteMatchingRequest {
  readonly filter?: JsonObjectText | undefined;
  readonly where?: JsonObjectText | undefined;
  readonly limit: number;
  /** Only counts what matches. */
  readonly dryRun: boolean;
}

export interface DeletedMatching {
  readonly deleted: number;
  readonly more: boolean;
  /** Only of a dry run: the documents that match. */
  readonly matching?: number;
  readonly hint?: string;
}

/** A value of metadata, as JSON text. */
type JsonText = string;

export interface FacetRequest {
  /** Fields of the metadata, also by their paths, each once. */
  readonly fields: readonly string[];
  readonly filter?: JsonObjectText | undefined;
  readonly where?: JsonObjectText | undefined;
  /** Values of a field at most. */
  readonly limit: number;
}

export interface Facets {
  /** Documents that match. */
  readonly documents: number;
  /** In the order of the fields. */
  readonly facets: readonly {
    readonly field: string;
    /** Distinct values. */
    readonly distinct: number;
    /** The most frequent first. */
    readonly values: readonly { readonly value: JsonText; readonly count: number }[];
  }[];
  readonly hint?: string;
}

export interface ScoreRequest {
  /** Absent = the default model. */
  readonly model?: string | undefined;
  /** Long documents are cut, so that the list fits. Absent = the documents count whole, and each is at most 100 KiB. */
  readonly cut?: {
    /** Tokens of a document; absent = `rerankedTokensDefault`, or less if the list would not fit otherwise. */
    readonly documentTokensMax?: number | undefined;
  };
  /** Results with a lower normalised score are left out. */
  readonly minScore?: number | undefined;
  readonly query: string;
  readonly documents: readonly DocumentInput[];
  readonly returnComponents: boolean;
  /** Each result has its passage of the text that was submitted. */
  readonly passage?: Pick<WantedPassage, 'context'> | undefined;
}

/** Tokens of one document of a re-rank request, unless the request says otherwise. */
export const rerankedTokensDefault = 4096;
/** Tokens of all documents of a re-rank request, after cutting. A core takes some 10 s for them. */
export const rerankedTokensMax = 100_000;
/** The same where every encoder of the model runs on a GPU. */
export const rerankedTokensMaxOnGpu = 1_000_000;
/** The `model` that stands for the default model of the service. */
export const defaultModelAlias = 'default';

export interface ScoreResponse extends RankedResponse {
  /** Present if documents were cut. */
  readonly cut?: {
    readonly documents: number;
    /** Tokens that are left of each of them. */
    readonly tokens: number;
    readonly tokensMax: number;
    /** Whether the list would not have fitted with as many tokens as a document may have. */
    readonly isToFit: boolean;
  };
}

export interface ResultComponents {
  /** The score without the bonuses of `matches`. */
  readonly maxsim: number;
  /** For each query token: its best similarity in the chunk, and the token of the chunk with that. */
  readonly similarities: Float32Array;
  readonly documentTokens: Uint32Array;
  /** For each query token: where that token vector of the chunk lies in the text; `undefined` if that is unknown. */
  readonly places: readonly (TokenVectorPlaces | undefined)[];
  readonly candidateScore?: number;
  readonly candidateRank?: number;
  /** In the order of the query. Absent for a search that matches no words. */
  readonly matches?: readonly MatchedSpan[];
}

/** Words of the query that match a metadata value as a whole. `start` and `end` are their place in the query, in code points. */
export interface MatchedSpan extends TextRange {
  readonly field: string;
  readonly value: string;
  /** Its part of the score. */
  readonly bonus: number;
}

export interface TokenVectorPlaces {
  /** That of the token which represents the vector; `undefined` if it comes from no text. */
  readonly place: TextRange | undefined;
  /** Those of all its tokens, ascending. */
  readonly all: readonly TextRange[];
}

/** In code points of the text that was submitted. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** A piece of a text, in whole words. Places count code points of the text. */
export interface Passage extends TextRange {
  readonly text: string;
  /** In the order of the text. Only with components, and where the words of the query's tokens are known. */
  readonly highlights?: readonly Highlight[];
}

/** A word of a passage. */
export interface Highlight extends TextRange {
  readonly text: string;
  /** The greatest similarity of a token of the query to a piece of it. */
  readonly similarity: number;
  /** The word of the query that has this token. */
  readonly queryWord: string;
}

export interface ResultItem {
  readonly docId: string;
  readonly chunkId: string;
  readonly chunkIndex: number;
  readonly score: number;
  /** The score as a share of the greatest MaxSim that the query could reach, 0 to 1. */
  readonly normalizedScore: number;
  /** Where the chunk lies in the text. Absent if that is unknown, as in segments of earlier releases. */
  readonly textRange?: TextRange;
  readonly metadata: JsonObjectText;
  readonly components?: ResultComponents;
  /** Only if it was asked for. Null where there is no text or no range, or where the range is beyond the text. */
  readonly passage?: Passage | null;
  /** In a grouped search: the best chunks of the document. This one is the first of them. */
  readonly chunks?: readonly ResultItem[];
}

export interface IndexPage {
  readonly indexes: readonly IndexRow[];
  readonly hasMore: boolean;
}

export interface UnknownTokens {
  readonly docId: string;
  /** At least 1, out of `inputTokens`. */
  readonly unknownTokens: number;
  readonly inputTokens: number;
}

export interface UpsertResponse {
  readonly indexId: string;
  readonly upsertedDocuments: number;
  readonly upsertedChunks: number;
  readonly failed: readonly { readonly docId: string; readonly error: string }[];
  /** The upserted documents with text that the model does not know. */
  readonly unknownTokens: readonly UnknownTokens[];
  readonly usage: RequestUsage;
}

export interface RankedResponse {
  readonly results: readonly ResultItem[];
  readonly hint?: string;
  readonly usage: RequestUsage;
}

/** A document and its best chunks, the best first. */
export interface DocumentResult {
  readonly docId: string;
  readonly metadata: JsonObjectText;
  readonly chunks: readonly ResultItem[];
}

/** Chunks, or documents where a query groups by document. */
export type QueryAnswer =
  | RankedResponse
  | (Omit<RankedResponse, 'results'> & { readonly documents: readonly DocumentResult[] });

export interface QueryResponse {
  /** In the order of the queries. */
  readonly results: readonly QueryAnswer[];
  readonly usage: RequestUsage;
}

export interface UsageSummary {
  readonly periodStartMs: number;
  readonly periodEndMs: number;
  readonly usage: UsageTotals;
  readonly limits: TenantLimits;
  readonly remaining: { readonly inputTokens: bigint; readonly documents: number };
  /** The name of the tenant. */
  readonly tenant: string;
}

export interface MeasuredIndex extends IndexRow {
  /** Absent until it is measured. */
  readonly recall?: RecallReport | undefined;
}

export interface IndexDescription {
  readonly documents: number;
  readonly segments: readonly {
    readonly state: 'active' | 'sealed';
    readonly documents: number;
    readonly records: number;
    readonly chunks: number;
    readonly tokenVectors: number;
    readonly bytes: number;
    readonly derivedBytes: number;
    /** Size of the codebook; 0 = none, so that its chunks are scored exactly. */
    readonly centroids: number;
  }[];
}

export interface IndexContents {
  readonly id: string;
  readonly documents: number;
  readonly chunks: number;
  /** Absent unless this process has the index open. */
  readonly bytes?: number;
}

/** Texts whose tokens are to be located: a query, and a chunk of a document. Nothing of them is kept. */
export interface LocateRequest {
  /** The index whose model and chunking count; absent: those of `score`. */
  readonly indexId?: string | undefined;
  readonly query: string;
  readonly document?: { readonly text: string; readonly chunkIndex: number } | undefined;
}

/** The start and end of each token, in order, in UTF-16 units. They are equal for a token that is no text. */
export type TokenSpanList = readonly (readonly [start: number, end: number])[];

export interface LocatedTokens {
  /** `undefined` if the model's tokenizer cannot say. */
  readonly query: TokenSpanList | undefined;
  /** Also `undefined` without a document, or if the document has no such chunk. */
  readonly document: TokenSpanList | undefined;
}

export interface ModelNames {
  readonly names: readonly string[];
  /** The model of an index for which none is named. */
  readonly defaultName: string;
}

export interface Readiness {
  readonly ready: boolean;
  /** The state of each part: `ok`, `degraded: ` and how, or what is wrong, in a few words fit for the public. */
  readonly checks: Readonly<Record<'catalog' | 'encoder' | 'disk' | 'draining', string>> & {
    /** The object store. Only a node has it. */
    readonly objects?: string;
    /** The shared limiter. Only a node has it. It is never a reason not to be ready. */
    readonly limiter?: string;
  };
}

export interface Service {
  /**
   * Checks the key (401) and its tenant (403), then rate (429), then concurrency (429). `authorization`: the raw header.
   * `whenFull` is waited for before a request is refused for its concurrency, and then a slot is tried again.
   */
  admit(authorization: string | undefined, whenFull?: () => Promise<unknown>): Promise<AdmittedRequest>;
  /** Does the same for a session in place of a key. */
  admitSession(session: string | undefined, whenFull?: () => Promise<unknown>): Promise<AdmittedRequest>;
  /** Opens a session of the key in the header (401). */
  openSession(authorization: string | undefined): Promise<string>;
  /** Signs out, on every node. */
  endSession(session: string | undefined): Promise<void>;
  createIndex(context: RequestContext, request: CreateIndexRequest): Promise<CreatedIndex>;
  /** The id of the index that has the name now, read from the catalog. */
  indexIdOf(context: RequestContext, name: string): Promise<string>;
  listIndexes(context: RequestContext): Promise<readonly IndexRow[]>;
  listIndexPage(context: RequestContext, page: Page<IndexPlace>): Promise<IndexPage>;
  getIndex(context: RequestContext, indexId: string): Promise<MeasuredIndex>;
  updateIndex(context: RequestContext, indexId: string, change: IndexChange): Promise<IndexRow>;
  /** Returns the first of them, with the name of the other. */
  swapIndexNames(context: RequestContext, indexId: string, otherId: string): Promise<IndexRow>;
  describeIndex(context: RequestContext, indexId: string): Promise<IndexDescription>;
  /** Counts what the first hundred indexes hold. Opens none. */
  contents(context: RequestContext): Promise<readonly IndexContents[]>;
  deleteIndex(context: RequestContext, indexId: string): Promise<boolean>;
  upsertDocuments(
    context: RequestContext,
    indexId: string,
    documents: readonly DocumentInput[],
    expiry?: DocumentExpiry,
  ): Promise<UpsertResponse>;
  deleteDocument(context: RequestContext, indexId: string, docId: string): Promise<boolean>;
  deleteMatching(
    context: RequestContext,
    indexId: string,
    request: DeleteMatchingRequest,
  ): Promise<DeletedMatching>;
  /** Documents in the order of the bytes of their ids. */
  listDocuments(
    context: RequestContext,
    indexId: string,
    request: DocumentListRequest,
  ): Promise<ListedDocuments>;
  getDocument(context: RequestContext, indexId: string, docId: string): Promise<StoredDocument>;
  countDocuments(context: RequestContext, indexId: string): Promise<DocumentCount>;
  countValues(context: RequestContext, indexId: string, request: FacetRequest): Promise<Facets>;
  /** Makes a new version of the document, with the same token vectors. */
  updateDocument(
    context: RequestContext,
    indexId: string,
    docId: string,
    change: DocumentChange,
  ): Promise<StoredDocument>;
  search(context: RequestContext, indexId: string, request: SearchRequest): Promise<RankedResponse>;
  query(context: RequestContext, indexId: string, queries: readonly SearchRequest[]): Promise<QueryResponse>;
  score(context: RequestContext, request: ScoreRequest): Promise<ScoreResponse>;
  locateTokens(context: RequestContext, request: LocateRequest): Promise<LocatedTokens>;
  /** The models that a new index may have, by name. */
  modelNames(context: RequestContext): Promise<ModelNames>;
  usage(context: RequestContext): Promise<UsageSummary>;
  /** Days in UTC, `YYYY-MM-DD`, both included. */
  usageDays(context: RequestContext, from: string, to: string): Promise<readonly UsageDay[]>;
  /** Counts a `/v1` request before its answer leaves, unless its operation has: upsert, delete, search and score do. */
  countRequest(context: RequestContext): Promise<void>;
  countLeft(context: RequestContext): Promise<void>;
  readiness(): Promise<Readiness>;
}
