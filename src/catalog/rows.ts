/**
 * Rows as SQLite and PostgreSQL return them, and the contract's plain data made of them. The columns have the same names in
 * both. Totals of tokens are read as text, because they may exceed 2^53.
 */
import type { UsageEvent } from '../contracts/document-commits.ts';
import type { ApiKey, AuditEntry, IndexRow, KeyAccess, Tenant, UsageDay } from './contract.ts';

export interface TenantColumns {
  readonly id: string;
  readonly name: string;
  /** 0 or 1 in SQLite. */
  readonly suspended: boolean | number;
  readonly requests_per_minute: number;
  readonly max_concurrent_requests: number;
  readonly input_tokens: string;
  readonly documents_max: number;
  readonly tenant_created_at_ms: number;
}

export const tenantColumns = `tenants.id, tenants.name, tenants.suspended, tenants.requests_per_minute,
  tenants.max_concurrent_requests, CAST(tenants.input_tokens AS text) AS input_tokens, tenants.documents_max,
  tenants.created_at_ms AS tenant_created_at_ms`;

export function toTenant(row: TenantColumns): Tenant {
  return {
    id: row.id,
    name: row.name,
    suspended: Boolean(row.suspended),
    limits: {
      requestsPerMinute: row.requests_per_minute,
      maxConcurrentRequests: row.max_concurrent_requests,
      inputTokens: BigInt(row.input_tokens),
      documents: row.documents_max,
    },
    createdAtMs: row.tenant_created_at_ms,
  };
}

export interface KeyColumns {
  readonly key_id: string;
  readonly tenant_id: string;
  readonly key_name: string | null;
  readonly access: KeyAccess;
  readonly key_requests_per_minute: number | null;
  readonly key_max_concurrent_requests: number | null;
  readonly created_at_ms: number;
  readonly revoked_at_ms: number | null;
  readonly last_used_at_ms: number | null;
}

export const keyColumns = `api_keys.id AS key_id, api_keys.tenant_id, api_keys.name AS key_name, api_keys.access,
  api_keys.created_at_ms, api_keys.revoked_at_ms, api_keys.last_used_at_ms,
  api_keys.requests_per_minute AS key_requests_per_minute,
  api_keys.max_concurrent_requests AS key_max_concurrent_requests`;

export function toApiKey(row: KeyColumns): ApiKey {
  return {
    id: row.key_id,
    tenantId: row.tenant_id,
    name: row.key_name ?? undefined,
    access: row.access,
    requestsPerMinute: row.key_requests_per_minute ?? undefined,
    maxConcurrentRequests: row.key_max_concurrent_requests ?? undefined,
    createdAtMs: row.created_at_ms,
    revokedAtMs: row.revoked_at_ms ?? undefined,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
  };
}

export interface AuditColumns extends Pick<AuditEntry, 'id' | 'actor' | 'act'> {
  readonly at_ms: number;
  readonly tenant_id: string | null;
  readonly tenant_name: string | null;
  /** JSON. */
  readonly detail: string;
}

export const auditColumns = `id, at_ms, actor, act, tenant_id, detail,
  (SELECT tenants.name FROM tenants WHERE tenants.id = audit_log.tenant_id) AS tenant_name`;

export function toAuditEntry(row: AuditColumns): AuditEntry {
  const { at_ms: atMs, tenant_id: tenantId, tenant_name: tenantName, detail, ...others } = row;
  return {
    ...others,
    atMs,
    tenantId: tenantId ?? undefined,
    tenantName: tenantName ?? undefined,
    detail: JSON.parse(detail) as AuditEntry['detail'],
  };
}

export interface IndexColumns extends Pick<IndexRow, 'id' | 'model' | 'status'> {
  readonly tenant_id: string;
  /** UTF-8 bytes in PostgreSQL. */
  readonly name: string | Buffer;
  readonly model_version: string;
  readonly max_tokens: number;
  readonly overlap_tokens: number;
  readonly minimum_chunk_tokens: number;
  readonly metadata_schema: string;
  /** A JSON array. Absent in the database of an earlier release. */
  readonly match_fields?: string;
  readonly created_at_ms: number;
}

export const indexColumns = `id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
  minimum_chunk_tokens, metadata_schema, match_fields, status, created_at_ms`;

export function toIndexRow(row: IndexColumns): IndexRow {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    name: row.name.toString(),
    model: row.model,
    modelVersion: row.model_version,
    chunking: {
      maxTokens: row.max_tokens,
      overlapTokens: row.overlap_tokens,
      minimumChunkTokens: row.minimum_chunk_tokens,
    },
    metadataSchema: row.metadata_schema,
    matchFields: JSON.parse(row.match_fields ?? '[]') as readonly string[],
    status: row.status,
    createdAtMs: row.created_at_ms,
  };
}

/** A row of a version, in which null means that it does not expire. */
export function withExpiry<Row extends { readonly expiresAtMs: number | null }>({
  expiresAtMs,
  ...row
}: Row): Omit<Row, 'expiresAtMs'> & { readonly expiresAtMs?: number } {
  return expiresAtMs === null ? row : { ...row, expiresAtMs };
}

type UsageCounters = Omit<UsageDay, 'day'>;
type Counts = Partial<Record<Exclude<keyof UsageCounters, 'inputTokens'>, number | null>>;

/** Usage that is to be added up: an event, or a row. A counter that is absent or null is 0. */
export interface UsagePart extends Counts {
  readonly inputTokens?: bigint | string | null;
}

export const usageColumns = `requests, CAST(input_tokens AS text) AS "inputTokens",
  document_upserts AS "documentUpserts", searches, scores`;

/** Removing expired documents writes usage of nothing. */
export const wasUsed = 'requests + input_tokens + document_upserts + searches + scores > 0';

export function sumOfUsage(parts: readonly UsagePart[]): UsageCounters {
  const sum = (counter: keyof Counts): number =>
    parts.reduce((total, part) => total + (part[counter] ?? 0), 0);
  return {
    inputTokens: parts.reduce((total, part) => total + BigInt(part.inputTokens ?? 0), 0n),
    requests: sum('requests'),
    documentUpserts: sum('documentUpserts'),
    searches: sum('searches'),
    scores: sum('scores'),
  };
}

/** An event as both databases take it, without its tenant: month, counters, rate window. */
export function usageValues(event: UsageEvent): readonly (string | number | bigint | Buffer | null)[] {
  const { rateWindow } = event;
  return [
    event.month,
    event.requests ?? 0,
    event.inputTokens ?? 0n,
    event.documentUpserts ?? 0,
    event.searches ?? 0,
    event.scores ?? 0,
    rateWindow === undefined
      ? null
      : Buffer.from(rateWindow.buffer, rateWindow.byteOffset, rateWindow.length),
  ];
}
