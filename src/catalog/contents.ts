/**
 * Everything that a catalog holds at one moment, as rows. Backups move a catalog with them between a data directory and a
 * database that nodes share. Tables and columns have the same names in both schemas, except that nodes keep the places of
 * versions in a table of their own. Columns that are not listed here belong to one schema alone.
 *
 * Values are those of SQLite. Dead versions stay behind, because no reader of an earlier moment moves with the contents. The
 * windows of request rates stay behind too: they are over by then.
 */
export type Value = string | bigint | Uint8Array | null;
export type Row = readonly Value[];

/** `flag`: 0 or 1. `name`: text that users choose, which PostgreSQL stores as bytes. */
export type ColumnKind = 'integer' | 'flag' | 'text' | 'name' | 'bytes';

/** In the order in which they are written. */
export const contentTables = {
  tenants: {
    id: 'text',
    name: 'text',
    suspended: 'flag',
    requests_per_minute: 'integer',
    max_concurrent_requests: 'integer',
    input_tokens: 'integer',
    documents_max: 'integer',
    documents_stored: 'integer',
    created_at_ms: 'integer',
  },
  api_keys: {
    id: 'text',
    tenant_id: 'text',
    name: 'text',
    hash: 'bytes',
    access: 'text',
    requests_per_minute: 'integer',
    max_concurrent_requests: 'integer',
    created_at_ms: 'integer',
    revoked_at_ms: 'integer',
    last_used_at_ms: 'integer',
  },
  ended_sessions: {
    digest: 'bytes',
    key_id: 'text',
    expires_at_ms: 'integer',
  },
  indexes: {
    index_key: 'integer',
    id: 'text',
    tenant_id: 'text',
    name: 'name',
    model: 'text',
    model_version: 'text',
    max_tokens: 'integer',
    overlap_tokens: 'integer',
    minimum_chunk_tokens: 'integer',
    metadata_schema: 'text',
    match_fields: 'text',
    status: 'text',
    created_at_ms: 'integer',
    generation: 'integer',
    documents_stored: 'integer',
  },
  versions: {
    version_id: 'integer',
    index_key: 'integer',
    segment_id: 'integer',
    record: 'integer',
    born: 'integer',
    chunk_count: 'integer',
    token_vectors: 'integer',
    doc_id: 'name',
    metadata: 'text',
    expires_at_ms: 'integer',
  },
  usage_months: {
    tenant_id: 'text',
    month: 'text',
    requests: 'integer',
    input_tokens: 'integer',
    document_upserts: 'integer',
    searches: 'integer',
    scores: 'integer',
  },
  // After the months: writing months also makes days, and these replace them.
  usage_days: {
    tenant_id: 'text',
    day: 'text',
    requests: 'integer',
    input_tokens: 'integer',
    document_upserts: 'integer',
    searches: 'integer',
    scores: 'integer',
  },
  audit_log: {
    id: 'integer',
    at_ms: 'integer',
    actor: 'text',
    act: 'text',
    tenant_id: 'text',
    detail: 'text',
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, ColumnKind>>>>;

export type TableName = keyof typeof contentTables;
export const tableNames = Object.keys(contentTables) as readonly TableName[];

export function columnsOf(table: TableName): readonly (readonly [string, ColumnKind])[] {
  return Object.entries(contentTables[table]);
}

/** The condition for rows that belong to the contents, in SQL that both databases understand. */
export function selectFrom(table: TableName): string {
  if (table !== 'versions') return '';
  return 'WHERE died = 0 AND index_key IN (SELECT index_key FROM indexes) ORDER BY version_id';
}

/** A segment that live versions lie in. */
export interface ContentSegment {
  readonly id: number;
  readonly indexKey: number;
  readonly indexId: string;
  readonly blob: string;
  readonly state: 'active' | 'sealed';
  /** Records below this number are referenced. */
  readonly recordsReferenced: number;
}

export interface CatalogContents {
  /** The fingerprint of the pepper that its keys were hashed with. */
  readonly pepperFingerprint: Uint8Array;
  /** This identifier, and every larger one, was never given. */
  readonly nextId: number;
  /** Yields the rows of a table in batches. */
  rows(table: TableName): AsyncIterable<readonly Row[]>;
}
