/**
 * The interface of a catalog. It is the only truth about tenants, keys, indexes, documents, the places of their token
 * matrices, and usage. Only plain data crosses it.
 *
 * A write is durable when its promise settles. The usage of searches and scores is the exception: it survives the death of
 * the process, but a power cut may take the last second of it.
 *
 * Identifiers and generations are safe integers (below 2^53); token totals are bigint. Times are milliseconds since the
 * epoch.
 */
import type {
  CommitUpsertInput,
  CommitUpsertResult,
  DeadVersion,
  DocumentVersion,
  UsageEvent,
} from '../contracts/document-commits.ts';
import type { IndexState, RecordLocation } from '../contracts/index-state.ts';

export interface TenantLimits {
  readonly requestsPerMinute: number;
  readonly maxConcurrentRequests: number;
  /** Input tokens per UTC calendar month. */
  readonly inputTokens: bigint;
  /** Stored documents over all indexes. */
  readonly documents: number;
}

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly limits: TenantLimits;
  readonly createdAtMs: number;
}

/** A key with `read` access changes nothing. */
export type KeyAccess = 'full' | 'read';

/** Limits of a key, beside those of its tenant. An absent one does not limit. */
export interface KeyLimits {
  readonly requestsPerMinute?: number | undefined;
  readonly maxConcurrentRequests?: number | undefined;
}

export interface ApiKey extends KeyLimits {
  readonly id: string;
  readonly tenantId: string;
  /** For people. Several keys may have one name. */
  readonly name: string | undefined;
  readonly access: KeyAccess;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | undefined;
  /** The time of a request with this key, at most `keyUseIntervalMs` older than that of the last one. */
  readonly lastUsedAtMs: number | undefined;
}

/** A key as it is stored: with a keyed hash of its text, never the text. */
export interface KeyRecord {
  readonly key: ApiKey;
  readonly hash: Uint8Array;
  readonly tenant: Tenant;
}

/** A session of the console whose owner has signed out. */
export interface EndedSession {
  /** Identifies the session. Nobody can derive the session from it. */
  readonly digest: Uint8Array;
  readonly keyId: string;
  readonly expiresAtMs: number;
}

/** An ended session is remembered this long after its expiry, because the clocks of nodes differ. */
export const endedSessionKeptMs = 3_600_000;

export type IndexStatus = 'creating' | 'ready' | 'error';

export interface IndexRow {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly model: string;
  readonly modelVersion: string;
  readonly chunking: {
    readonly maxTokens: number;
    readonly overlapTokens: number;
    readonly minimumChunkTokens: number;
  };
  /** JSON text, stored and returned as given. */
  readonly metadataSchema: string;
  /** Names or paths of the metadata fields whose texts words of a query match. Empty = none. */
  readonly matchFields: readonly string[];
  readonly status: IndexStatus;
  readonly createdAtMs: number;
}

export interface ModelVersionUse extends Pick<IndexRow, 'model' | 'modelVersion'> {
  readonly indexes: number;
}

export interface CreateIndexInput extends Omit<IndexRow, 'status' | 'createdAtMs'> {}

export type CreateIndexResult =
  | { readonly outcome: 'created'; readonly index: IndexRow }
  /** With the index that has the name. */
  | { readonly outcome: 'duplicate_name'; readonly index: IndexRow }
  | { readonly outcome: 'too_many_indexes' };

/** The usage of a tenant in a month. */
export interface UsageTotals {
  readonly inputTokens: bigint;
  readonly requests: number;
  readonly documentUpserts: number;
  readonly searches: number;
  readonly scores: number;
  /** Stored now, over all indexes of the tenant. */
  readonly documents: number;
}

/** The usage of a tenant on a day. */
export interface UsageDay extends Omit<UsageTotals, 'documents'> {
  /** In UTC, `YYYY-MM-DD`. */
  readonly day: string;
}

/** Changes of an index that tenants make themselves. */
export interface IndexChange {
  /** Absent = it stays. */
  readonly name?: string | undefined;
  /** Absent = they stay. */
  readonly matchFields?: readonly string[] | undefined;
}

export type AuditAct =
  | 'tenant_created'
  | 'tenant_suspended'
  | 'tenant_resumed'
  | 'limits_changed'
  | 'tenant_deleted'
  | 'key_created'
  | 'key_revoked'
  | 'keys_reset'
  | 'login_refused'
  | 'match_fields_changed';

/**
 * One act on a tenant or a key, or of a tenant on its index. The log has no name and no secret, because it stays when the
 * tenant is erased.
 */
export interface AuditEntry {
  readonly id: number;
  readonly atMs: number;
  /** The `actor` that the catalog was opened with, or the one given to `actingAs`. */
  readonly actor: string;
  readonly act: AuditAct;
  readonly tenantId: string | undefined;
  /** Its name now; `undefined` when it was erased. */
  readonly tenantName: string | undefined;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface AuditQuery {
  /** Only entries with smaller ids. */
  readonly before?: number | undefined;
  readonly limit: number;
  readonly tenantId?: string | undefined;
}

export interface CommitDeleteInput {
  readonly tenantId: string;
  readonly indexId: string;
  readonly docId: string;
  readonly usage: UsageEvent;
}

export interface CommitDeleteVersionsInput extends Omit<CommitDeleteInput, 'docId'> {
  readonly versionIds: readonly number[];
}

export type CommitDeleteResult =
  | { readonly outcome: 'committed'; readonly generation: number; readonly died: DeadVersion }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'index_missing' };

export type CommitDeleteVersionsResult =
  | { readonly outcome: 'committed'; readonly generation: number; readonly died: readonly DeadVersion[] }
  | Exclude<CommitDeleteResult, { readonly outcome: 'committed' }>;

export interface StoredDocument extends Pick<
  DocumentVersion,
  'docId' | 'metadata' | 'chunkCount' | 'expiresAtMs'
> {}

/** A page of a list. */
export interface Page<Place> {
  /** The place of the last item of the page before. Absent = from the beginning. */
  readonly after?: Place | undefined;
  readonly limit: number;
}

/** Documents in the order of the UTF-8 bytes of their ids, without those that have expired by `nowMs`. */
export interface DocumentOrder extends Page<string> {
  readonly nowMs: number;
}

export interface DocumentPageQuery extends DocumentOrder {
  readonly bytesMax: number;
}

/** An index that holds documents which have expired. */
export type ExpiredIndex = Pick<IndexRow, 'id' | 'tenantId'>;

export interface DocumentPage {
  readonly documents: readonly StoredDocument[];
  readonly hasMore: boolean;
}

export interface DocumentCount {
  readonly documents: number;
  readonly chunks: number;
}

export type IndexPlace = Pick<IndexRow, 'createdAtMs' | 'id'>;
export type TenantPlace = Pick<Tenant, 'createdAtMs' | 'id'>;

export type UpdateIndexResult =
  | { readonly outcome: 'updated'; readonly index: IndexRow }
  | { readonly outcome: 'index_missing' }
  | { readonly outcome: 'duplicate_name' };

/** The result of a merge. Each moved version now lies at `to`. A version that died during the merge stays dead. */
export interface SwapSegmentsInput {
  readonly indexId: string;
  readonly removedSegmentIds: readonly number[];
  readonly moves: readonly { readonly versionId: number; readonly to: RecordLocation }[];
}

export interface NewTenant {
  readonly id: string;
  readonly name: string;
  readonly limits: TenantLimits;
  /** A first key, with full access. */
  readonly key?: Pick<NewKey, 'id' | 'hash'>;
}

/** The choices of who makes a key. */
export interface KeyChoice extends KeyLimits {
  readonly name?: string | undefined;
  /** Default `full`. */
  readonly access?: KeyAccess | undefined;
}

export interface NewKey extends KeyChoice {
  readonly id: string;
  readonly tenantId: string;
  readonly hash: Uint8Array;
}

export type CreateKeyResult =
  | { readonly outcome: 'created'; readonly key: ApiKey }
  | { readonly outcome: 'tenant_missing' }
  | { readonly outcome: 'too_many_keys' };

export interface NewSegment {
  readonly id: number;
  readonly indexId: string;
  readonly blob: string;
}

/** A tenant has at most so many keys that are not revoked. */
export const liveKeysMax = 10;
/** Unicode code points of the name of a key. */
export const keyNameLengthMax = 64;
/** The last use of a key is written at most once in this time. */
export const keyUseIntervalMs = 3_600_000;
/** The audit log keeps so many entries, the newest. */
export const auditEntriesMax = 100_000;
/** Tenants change match fields themselves. More changes of a tenant in an hour are not written, so that they push out nothing. */
export const tenantActsMax = 10;
export const tenantActsMs = 3_600_000;
/** The actor of a catalog that was opened without one. */
export const unnamedActor = 'unnamed';

/** Changes of tenants and keys. Each is written to the audit log in the same transaction. */
export interface CatalogActs {
  /** Rejects with `validation_error` when another tenant has this name, or `assertTenantName` refuses it. */
  createTenant(tenant: NewTenant): Promise<Tenant>;
  setTenantSuspended(tenantId: string, suspended: boolean): Promise<Tenant | undefined>;
  setTenantLimits(tenantId: string, limits: Partial<TenantLimits>): Promise<Tenant | undefined>;
  /** Erases the tenant, its keys, indexes, documents and usage. Returns the ids of the indexes whose blobs must be deleted. */
  deleteTenant(tenantId: string): Promise<{ readonly indexIds: readonly string[] } | undefined>;
  /** `too_many_keys`: the tenant has `liveKeysMax` already. Rejects with `validation_error` when `assertKeyName` refuses the name. */
  createKey(key: NewKey): Promise<CreateKeyResult>;
  /** Returns the key, which may have been revoked before. */
  revokeKey(keyId: string): Promise<ApiKey | undefined>;
  /** Writes to the audit log that a login was refused. `detail` says what is known of the caller. */
  noteRefusedLogin(detail: Readonly<Record<string, unknown>>): Promise<void>;
}

export interface Catalog extends CatalogActs {
  /** The same changes, with another actor in the audit log. */
  actingAs(actor: string): CatalogActs;

  // Tenants and keys (the CLI uses these beside a running server).
  /** All of them, or those of a page; oldest first. */
  listTenants(page?: Page<TenantPlace>): Promise<readonly Tenant[]>;
  getTenant(tenantId: string): Promise<Tenant | undefined>;
  listKeys(tenantId: string): Promise<readonly ApiKey[]>;
  findKey(keyId: string): Promise<KeyRecord | undefined>;
  /** Notes a use of a key. Changes nothing unless the last known use is `keyUseIntervalMs` older, whichever process wrote it. */
  noteKeyUse(keyId: string, atMs: number): Promise<void>;
  /** Remembers an ended session until it expires or its key is erased. */
  endSession(session: EndedSession): Promise<void>;
  hasSessionEnded(digest: Uint8Array): Promise<boolean>;
  /** Newest first. */
  listAudit(query: AuditQuery): Promise<readonly AuditEntry[]>;

  // Indexes.
  createIndex(index: CreateIndexInput, indexesMax: number): Promise<CreateIndexResult>;
  /** All of them, or those of a page; oldest first. */
  listIndexes(tenantId: string, page?: Page<IndexPlace>): Promise<readonly IndexRow[]>;
  /** `undefined` also for an index of another tenant. */
  getIndex(tenantId: string, indexId: string): Promise<IndexRow | undefined>;
  /** The id of the tenant's index that has the name at the moment of the call. */
  findIndexId(tenantId: string, name: string): Promise<string | undefined>;
  /** The ids of all indexes of all tenants. Blobs of other indexes are unreferenced. */
  listIndexIds(): Promise<readonly string[]>;
  /** The model versions that indexes have, and how many have each: the largest number first. */
  listModelVersions(): Promise<readonly ModelVersionUse[]>;
  setIndexStatus(indexId: string, status: IndexStatus): Promise<void>;
  /** Names stay unique within the tenant. Other match fields are written to the audit log, as those of a new index are. */
  updateIndex(tenantId: string, indexId: string, change: IndexChange): Promise<UpdateIndexResult>;
  /**
   * One transaction, so that each name belongs to one of the two at every moment. Returns the index of `indexId`; `undefined`
   * where one of them is missing.
   */
  swapIndexNames(tenantId: string, indexId: string, otherId: string): Promise<IndexRow | undefined>;
  /** The index is gone, and its name free, at once. The rows of its documents are purged in the background. */
  deleteIndex(tenantId: string, indexId: string): Promise<boolean>;

  // Documents.
  /** New identifiers for versions and segments: increasing, and never reused, not even after a crash. */
  allocateIds(count: number): Promise<readonly number[]>;
  /**
   * In one transaction: checks that the index exists and that the allowance holds the documents, ends the versions that are
   * replaced, stores the new ones, charges the usage, and adds 1 to the generation. Usage is charged with the outcome
   * `committed` only. For any other outcome the caller records it (`recordUsage`).
   */
  commitUpsert(input: CommitUpsertInput): Promise<CommitUpsertResult>;
  /** One transaction. The outcomes `absent` and `index_missing` change and charge nothing. */
  commitDelete(input: CommitDeleteInput): Promise<CommitDeleteResult>;
  /** As `commitDelete`, for those of the versions that are alive. A document that was replaced since then stays. */
  commitDeleteVersions(input: CommitDeleteVersionsInput): Promise<CommitDeleteVersionsResult>;
  /** Counts the doc ids that the index stores now. The allowance is checked early with it; the commit decides. */
  countStored(indexId: string, docIds: readonly string[]): Promise<number>;
  resolveVersions(
    indexId: string,
    versionIds: readonly number[],
  ): Promise<ReadonlyMap<number, StoredDocument>>;
  /** As `resolveVersions`, for many versions: searches do not wait for it. */
  readMetadata(indexId: string, versionIds: readonly number[]): Promise<ReadonlyMap<number, StoredDocument>>;
  /** The first of these versions, which may have died. None when there is no such index. */
  firstVersions(
    indexId: string,
    versionIds: readonly number[],
    order: DocumentOrder,
  ): Promise<readonly number[]>;
  /**
   * Documents stored now. A page ends early once its metadata have `bytesMax` bytes, but it has at least one document.
   * `undefined` when there is no such index.
   */
  listDocuments(indexId: string, page: DocumentPageQuery): Promise<DocumentPage | undefined>;
  /** The live version of a document, and where it lies now. It may have expired. */
  findDocument(indexId: string, docId: string): Promise<DocumentVersion | undefined>;
  /** Leaves out documents that have expired by then. `undefined` when there is no such index. */
  countDocuments(indexId: string, nowMs: number): Promise<DocumentCount | undefined>;
  /** A document that has expired stays stored, and counts for the allowance, until its version is ended. */
  expiredIndexes(nowMs: number): Promise<readonly ExpiredIndex[]>;
  /** Ids of live versions that have expired by then; the first to expire come first. */
  expiredVersions(indexId: string, nowMs: number, limit: number): Promise<readonly number[]>;

  // Segments.
  createSegment(segment: NewSegment): Promise<void>;
  sealSegment(segmentId: number, records: number): Promise<void>;
  loadIndexState(indexId: string): Promise<IndexState>;
  swapSegments(input: SwapSegmentsInput): Promise<void>;
  /** Deletes the rows of versions that died at or before a generation, which no reader may need any more. Returns how many. */
  forgetDeadVersions(indexId: string, generation: number): Promise<number>;

  // Usage.
  /**
   * A catalog that several processes share makes the event durable. It rejects with `usage_limit_exceeded`, and counts
   * nothing, when the month would exceed `inputTokensMax`.
   *
   * The catalog of one process leaves that limit to the reservations of the service. There a settled event survives the death
   * of the process. While the ledger cannot be written, events wait in memory. When too many wait, further ones are refused
   * with `service_unavailable` and count nothing.
   */
  recordUsage(event: UsageEvent, inputTokensMax?: bigint): Promise<void>;
  /** Includes every write that has settled. Read at the moment of the call. */
  usageTotals(tenantId: string, month: string): Promise<UsageTotals>;
  /**
   * Both days included, oldest first; days without usage are left out. Days are kept for 400 days. Usage counts on the day
   * on which it was written. Where its month was over by then, it counts on the last day of that month.
   */
  usageDays(tenantId: string, from: string, to: string): Promise<readonly UsageDay[]>;
  /** The rate windows that were recorded last with usage of this month or a later one. A tenant may have several. */
  rateWindows(month: string): Promise<readonly { readonly tenantId: string; readonly packed: Uint8Array }[]>;

  /** Resolves when a write transaction without content works. Readiness is checked with it. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
