/**
 * What the service asks of a catalog: the only truth about tenants, keys, indexes, documents, where
 * their token matrices lie, and usage. Plain data; every write is durable when its promise settles
 * (`synchronous=FULL`), search and score usage excepted (it survives the death of the process, a
 * power cut may drop its last moments).
 *
 * Numbers: identifiers and generations are safe integers (below 2^53); token totals are bigint.
 * Times are milliseconds since the epoch.
 */
import type {
  CommitUpsertInput,
  CommitUpsertResult,
  DeadVersion,
  DocumentVersion,
  UsageEvent,
} from '../document-commits.ts';
import type { IndexState, RecordLocation } from '../index-state.ts';

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

/** `read`: nothing may be changed with it. */
export type KeyAccess = 'full' | 'read';

export interface ApiKey {
  readonly id: string;
  readonly tenantId: string;
  readonly access: KeyAccess;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | undefined;
}

/** The stored side of a key: a keyed hash of the whole key, never the key. */
export interface KeyRecord {
  readonly key: ApiKey;
  readonly hash: Uint8Array;
  readonly tenant: Tenant;
}

/** A session of the console whose owner has signed out. */
export interface EndedSession {
  /** Tells it from others; nobody can make a session of it. */
  readonly digest: Uint8Array;
  readonly keyId: string;
  readonly expiresAtMs: number;
}

/** How long an ended session is remembered past its expiry, which each node's own clock decides. */
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
  readonly status: IndexStatus;
  readonly createdAtMs: number;
}

export interface ModelVersionUse extends Pick<IndexRow, 'model' | 'modelVersion'> {
  readonly indexes: number;
}

export interface CreateIndexInput extends Omit<IndexRow, 'status' | 'createdAtMs'> {}

export interface UsageTotals {
  readonly inputTokens: bigint;
  readonly requests: number;
  readonly documentUpserts: number;
  readonly searches: number;
  readonly scores: number;
  /** Stored now, over all indexes of the tenant. */
  readonly documents: number;
}

/** A day in UTC, `YYYY-MM-DD`, with usage. */
export interface UsageDay extends Omit<UsageTotals, 'documents'> {
  readonly day: string;
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
  | 'login_refused';

/** What was done to a tenant or a key. It holds no name and no secret: it stays when the tenant is erased. */
export interface AuditEntry {
  readonly id: number;
  readonly atMs: number;
  /** Who did it: whoever had the catalog open (`actor` of its opening), or acted through it (`actingAs`). */
  readonly actor: string;
  readonly act: AuditAct;
  readonly tenantId: string | undefined;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface AuditQuery {
  /** Only entries with smaller ids. */
  readonly before?: number | undefined;
  readonly limit: number;
  readonly tenantId?: string | undefined;
}

export type CommitDeleteResult =
  | { readonly outcome: 'committed'; readonly generation: number; readonly died: DeadVersion }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'index_missing' };

export type CommitDeleteVersionsResult =
  | { readonly outcome: 'committed'; readonly generation: number; readonly died: readonly DeadVersion[] }
  | Exclude<CommitDeleteResult, { readonly outcome: 'committed' }>;

export interface ResolvedVersion {
  readonly docId: string;
  readonly metadata: string;
}

export interface StoredDocument extends ResolvedVersion {
  readonly chunkCount: number;
}

/** What comes after a place in a list: the place that a list ends at is that of its last item. */
export interface Page<Place> {
  /** Absent = from the beginning. */
  readonly after?: Place | undefined;
  readonly limit: number;
}

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

export type RenameIndexResult =
  | { readonly outcome: 'renamed'; readonly index: IndexRow }
  | { readonly outcome: 'index_missing' }
  | { readonly outcome: 'duplicate_name' };

/** Moves of a merge: versions now lie at `to`; one that died meanwhile stays dead. */
export interface SwapSegmentsInput {
  readonly indexId: string;
  readonly removedSegmentIds: readonly number[];
  readonly moves: readonly { readonly versionId: number; readonly to: RecordLocation }[];
}

export const auditEntriesMax = 100_000;
/** Who acts that does not say. */
export const unnamedActor = 'unnamed';

/** What is done to tenants and keys. Each act is written to the audit log in the same transaction. */
export interface CatalogActs {
  /** Rejects with `validation_error` when there is a tenant of this name, or `assertTenantName` refuses it. */
  createTenant(input: {
    readonly id: string;
    readonly name: string;
    readonly limits: TenantLimits;
    readonly key?: { readonly id: string; readonly hash: Uint8Array };
  }): Promise<Tenant>;
  setTenantSuspended(tenantId: string, suspended: boolean): Promise<Tenant | undefined>;
  setTenantLimits(tenantId: string, limits: Partial<TenantLimits>): Promise<Tenant | undefined>;
  /** Erases the tenant, its keys, indexes, documents and usage; returns the ids of the indexes whose blobs must go. */
  deleteTenant(tenantId: string): Promise<{ readonly indexIds: readonly string[] } | undefined>;
  /** At most two live keys a tenant. */
  createKey(input: {
    readonly id: string;
    readonly tenantId: string;
    readonly hash: Uint8Array;
    /** Default `full`. */
    readonly access?: KeyAccess;
  }): Promise<
    | { readonly outcome: 'created'; readonly key: ApiKey }
    | { readonly outcome: 'tenant_missing' }
    | { readonly outcome: 'too_many_keys' }
  >;
  revokeKey(keyId: string): Promise<ApiKey | undefined>;
  /** Somebody was not let in. `detail` says what is known of them. */
  noteRefusedLogin(detail: Readonly<Record<string, unknown>>): Promise<void>;
}

export interface Catalog extends CatalogActs {
  /** The same acts, by somebody else for the audit log. */
  actingAs(actor: string): CatalogActs;

  // Tenants and keys (the CLI uses these beside a running server).
  /** All of them, or those of a page; oldest first. */
  listTenants(page?: Page<TenantPlace>): Promise<readonly Tenant[]>;
  getTenant(tenantId: string): Promise<Tenant | undefined>;
  listKeys(tenantId: string): Promise<readonly ApiKey[]>;
  findKey(keyId: string): Promise<KeyRecord | undefined>;
  /** From now until it expires; it goes with its key. */
  endSession(session: EndedSession): Promise<void>;
  hasSessionEnded(digest: Uint8Array): Promise<boolean>;
  /** Newest first; the newest `auditEntriesMax` are kept. */
  listAudit(query: AuditQuery): Promise<readonly AuditEntry[]>;

  // Indexes.
  createIndex(
    input: CreateIndexInput,
    indexesMax: number,
  ): Promise<
    | { readonly outcome: 'created'; readonly index: IndexRow }
    | { readonly outcome: 'duplicate_name' }
    | { readonly outcome: 'too_many_indexes' }
  >;
  /** All of them, or those of a page; oldest first. */
  listIndexes(tenantId: string, page?: Page<IndexPlace>): Promise<readonly IndexRow[]>;
  /** `undefined` also for an index of another tenant. */
  getIndex(tenantId: string, indexId: string): Promise<IndexRow | undefined>;
  /** Every index id the catalog knows, of all tenants (to find unreferenced blobs). */
  listIndexIds(): Promise<readonly string[]>;
  /** The model versions that indexes have, and how many have each. */
  listModelVersions(): Promise<readonly ModelVersionUse[]>;
  setIndexStatus(indexId: string, status: IndexStatus): Promise<void>;
  /** Names stay unique within the tenant. */
  renameIndex(tenantId: string, indexId: string, name: string): Promise<RenameIndexResult>;
  /** One transaction: at no moment does a name mean neither of them. Returns the first; `undefined` where one is missing. */
  swapIndexNames(tenantId: string, indexId: string, otherId: string): Promise<IndexRow | undefined>;
  /** Invisible, and its name free, at once; the rows of its documents are purged in the background. */
  deleteIndex(tenantId: string, indexId: string): Promise<boolean>;

  // Documents.
  /** Fresh identifiers for versions and segments: increasing, never reused, also after a crash. */
  allocateIds(count: number): Promise<readonly number[]>;
  /**
   * One transaction: index exists, old versions die, rows, allowance, usage, generation + 1. Usage is
   * charged with the outcome `committed` only; whatever else was answered is the caller's `recordUsage`.
   */
  commitUpsert(input: CommitUpsertInput): Promise<CommitUpsertResult>;
  /** As `commitUpsert`: the outcomes `absent` and `index_missing` change and charge nothing. */
  commitDelete(input: {
    readonly tenantId: string;
    readonly indexId: string;
    readonly docId: string;
    readonly usage: UsageEvent;
  }): Promise<CommitDeleteResult>;
  /** Likewise for those of the versions that are alive, in one transaction: a document that was replaced since stays. */
  commitDeleteVersions(input: {
    readonly tenantId: string;
    readonly indexId: string;
    readonly versionIds: readonly number[];
    readonly usage: UsageEvent;
  }): Promise<CommitDeleteVersionsResult>;
  /** Counts those of the doc ids that the index stores now (an early allowance check; the commit decides). */
  countStored(indexId: string, docIds: readonly string[]): Promise<number>;
  resolveVersions(
    indexId: string,
    versionIds: readonly number[],
  ): Promise<ReadonlyMap<number, ResolvedVersion>>;
  /** As `resolveVersions`, for reading many of them: no search waits for it. */
  readMetadata(indexId: string, versionIds: readonly number[]): Promise<ReadonlyMap<number, ResolvedVersion>>;
  /**
   * Documents stored now, by the bytes of their ids in UTF-8, from the first one after `page.after`. A page ends early, but never
   * before its first document, once its metadata have `bytesMax` bytes. `undefined` when there is no such index.
   */
  listDocuments(
    indexId: string,
    page: Page<string> & { readonly bytesMax: number },
  ): Promise<DocumentPage | undefined>;
  /** The live version of a document, and where it lies now. */
  findDocument(indexId: string, docId: string): Promise<DocumentVersion | undefined>;
  /** `undefined` when there is no such index. */
  countDocuments(indexId: string): Promise<DocumentCount | undefined>;

  // Segments.
  createSegment(segment: {
    readonly id: number;
    readonly indexId: string;
    readonly blob: string;
  }): Promise<void>;
  sealSegment(segmentId: number, records: number): Promise<void>;
  loadIndexState(indexId: string): Promise<IndexState>;
  swapSegments(input: SwapSegmentsInput): Promise<void>;
  /** Forgets dead versions at or below a generation no reader pins any more; returns how many. */
  forgetDeadVersions(indexId: string, generation: number): Promise<number>;

  // Usage.
  /**
   * Survives the death of the process when settled, but while the ledger cannot be written: then it waits in memory,
   * or is refused with `service_unavailable` and counts nothing when too much does. A catalog that several processes
   * share makes it durable, and rejects with `usage_limit_exceeded` and counts nothing when the month would exceed
   * `inputTokensMax`; for one process its own reservations decide that.
   */
  recordUsage(event: UsageEvent, inputTokensMax?: bigint): Promise<void>;
  /** Includes every settled write; read at the moment of the call. */
  usageTotals(tenantId: string, month: string): Promise<UsageTotals>;
  /**
   * Both days included, oldest first; days without usage are left out. They are kept for 400 days. Usage counts on the day
   * on which it was written, or on the last of its month where that was over.
   */
  usageDays(tenantId: string, from: string, to: string): Promise<readonly UsageDay[]>;
  /** The windows recorded last, in usage of this month or a later one: several a tenant, in no order. */
  rateWindows(month: string): Promise<readonly { readonly tenantId: string; readonly packed: Uint8Array }[]>;

  /** Resolves when a trivial write transaction works (readiness). */
  ping(): Promise<void>;
  close(): Promise<void>;
}
