/** Rows as SQLite returns them, and their mapping to the contract's plain data. Used by readers and writers. */
import type { ApiKey, AuditAct, AuditEntry, IndexRow, IndexStatus, KeyAccess, Tenant } from '../contract.ts';
import type { UsageEvent } from '../../document-commits.ts';

/** Read with safe integers: token totals may exceed 2^53. */
export interface TenantColumns {
  readonly id: string;
  readonly name: string;
  readonly suspended: bigint;
  readonly requests_per_minute: bigint;
  readonly max_concurrent_requests: bigint;
  readonly input_tokens: bigint;
  readonly documents_max: bigint;
  readonly tenant_created_at_ms: bigint;
}

export const tenantColumns = `tenants.id, tenants.name, tenants.suspended, tenants.requests_per_minute,
  tenants.max_concurrent_requests, tenants.input_tokens, tenants.documents_max,
  tenants.created_at_ms AS tenant_created_at_ms`;

export function toTenant(row: TenantColumns): Tenant {
  return {
    id: row.id,
    name: row.name,
    suspended: row.suspended !== 0n,
    limits: {
      requestsPerMinute: Number(row.requests_per_minute),
      maxConcurrentRequests: Number(row.max_concurrent_requests),
      inputTokens: row.input_tokens,
      documents: Number(row.documents_max),
    },
    createdAtMs: Number(row.tenant_created_at_ms),
  };
}

export interface KeyColumns {
  readonly key_id: string;
  readonly tenant_id: string;
  readonly access: KeyAccess;
  readonly created_at_ms: number | bigint;
  readonly revoked_at_ms: number | bigint | null;
}

export const keyColumns = `api_keys.id AS key_id, api_keys.tenant_id, api_keys.access, api_keys.created_at_ms,
  api_keys.revoked_at_ms`;

export function toApiKey(row: KeyColumns): ApiKey {
  return {
    id: row.key_id,
    tenantId: row.tenant_id,
    access: row.access,
    createdAtMs: Number(row.created_at_ms),
    revokedAtMs: row.revoked_at_ms === null ? undefined : Number(row.revoked_at_ms),
  };
}

export interface AuditColumns {
  readonly id: number;
  readonly at_ms: number;
  readonly actor: string;
  readonly act: AuditAct;
  readonly tenant_id: string | null;
  readonly detail: string;
}

export function toAuditEntry(row: AuditColumns): AuditEntry {
  return {
    id: row.id,
    atMs: row.at_ms,
    actor: row.actor,
    act: row.act,
    tenantId: row.tenant_id ?? undefined,
    detail: JSON.parse(row.detail) as AuditEntry['detail'],
  };
}

export interface IndexColumns {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly model: string;
  readonly model_version: string;
  readonly max_tokens: number;
  readonly overlap_tokens: number;
  readonly minimum_chunk_tokens: number;
  readonly metadata_schema: string;
  readonly status: IndexStatus;
  readonly created_at_ms: number;
}

export const indexColumns = `id, tenant_id, name, model, model_version, max_tokens, overlap_tokens,
  minimum_chunk_tokens, metadata_schema, status, created_at_ms`;

export function toIndexRow(row: IndexColumns): IndexRow {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    name: row.name,
    model: row.model,
    modelVersion: row.model_version,
    chunking: {
      maxTokens: row.max_tokens,
      overlapTokens: row.overlap_tokens,
      minimumChunkTokens: row.minimum_chunk_tokens,
    },
    metadataSchema: row.metadata_schema,
    status: row.status,
    createdAtMs: row.created_at_ms,
  };
}

export interface UsageColumns {
  readonly requests: bigint;
  readonly input_tokens: bigint;
  readonly document_upserts: bigint;
  readonly searches: bigint;
  readonly scores: bigint;
}

/** An event as a row of its own. */
export function usageColumns(event: UsageEvent): UsageColumns {
  return {
    requests: BigInt(event.requests ?? 0),
    input_tokens: event.inputTokens ?? 0n,
    document_upserts: BigInt(event.documentUpserts ?? 0),
    searches: BigInt(event.searches ?? 0),
    scores: BigInt(event.scores ?? 0),
  };
}

/** Parameters of `addUsageSql`. */
export function usageParameters(
  event: UsageEvent,
): readonly (string | number | bigint | Uint8Array | null)[] {
  return [
    event.tenantId,
    event.month,
    event.requests ?? 0,
    event.inputTokens ?? 0n,
    event.documentUpserts ?? 0,
    event.searches ?? 0,
    event.scores ?? 0,
    event.rateWindow ?? null,
  ];
}

export interface UsageDayColumns extends UsageColumns {
  readonly day: string;
}

export const selectUsageDaysSql = `SELECT day, requests, input_tokens, document_upserts, searches, scores
  FROM usage_days WHERE tenant_id = ? AND day BETWEEN ? AND ?`;

export const selectUsageSql = `SELECT requests, input_tokens, document_upserts, searches, scores
  FROM usage_months WHERE tenant_id = ? AND month = ?`;

/** The same table exists in both databases; `usageTotals` adds the two up. */
export const addUsageSql = `
  INSERT INTO usage_months
    (tenant_id, month, requests, input_tokens, document_upserts, searches, scores, rate_window)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (tenant_id, month) DO UPDATE SET
    requests = requests + excluded.requests,
    input_tokens = input_tokens + excluded.input_tokens,
    document_upserts = document_upserts + excluded.document_upserts,
    searches = searches + excluded.searches,
    scores = scores + excluded.scores,
    rate_window = coalesce(excluded.rate_window, rate_window)`;

export interface RateWindowColumns {
  readonly tenantId: string;
  readonly packed: Uint8Array;
}

export const selectRateWindowsSql = `SELECT tenant_id AS tenantId, rate_window AS packed FROM usage_months
  WHERE month >= ? AND rate_window IS NOT NULL`;
