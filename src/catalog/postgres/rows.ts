/** Rows as PostgreSQL returns them, and their mapping to the contract's plain data. */
import type { ApiKey, IndexRow, IndexStatus, KeyAccess, Tenant } from '../contract.ts';
import type { DeadVersion, UsageEvent } from '../../document-commits.ts';

export interface TenantRow {
  readonly id: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly requests_per_minute: number;
  readonly max_concurrent_requests: number;
  readonly input_tokens: string;
  readonly documents_max: number;
  readonly tenant_created_at_ms: number;
}

export const tenantColumns = `tenants.id, tenants.name, tenants.suspended, tenants.requests_per_minute,
  tenants.max_concurrent_requests, tenants.input_tokens::text AS input_tokens, tenants.documents_max,
  tenants.created_at_ms AS tenant_created_at_ms`;

export function toTenant(row: TenantRow): Tenant {
  return {
    id: row.id,
    name: row.name,
    suspended: row.suspended,
    limits: {
      requestsPerMinute: row.requests_per_minute,
      maxConcurrentRequests: row.max_concurrent_requests,
      inputTokens: BigInt(row.input_tokens),
      documents: row.documents_max,
    },
    createdAtMs: row.tenant_created_at_ms,
  };
}

export interface KeyRow {
  readonly key_id: string;
  readonly tenant_id: string;
  readonly access: KeyAccess;
  readonly created_at_ms: number;
  readonly revoked_at_ms: number | null;
}

export const keyColumns = `api_keys.id AS key_id, api_keys.tenant_id, api_keys.access, api_keys.created_at_ms,
  api_keys.revoked_at_ms`;

export function toApiKey(row: KeyRow): ApiKey {
  return {
    id: row.key_id,
    tenantId: row.tenant_id,
    access: row.access,
    createdAtMs: row.created_at_ms,
    revokedAtMs: row.revoked_at_ms ?? undefined,
  };
}

export interface IndexColumns {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: Buffer;
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
    name: row.name.toString(),
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

export type DiedColumn =
  | readonly (readonly [docId: string, versionId: number, segmentId: number, record: number])[]
  | null;

export function toDead(died: DiedColumn): readonly DeadVersion[] {
  return (died ?? []).map(([docId, versionId, segmentId, record]) => ({
    docId: Buffer.from(docId, 'base64').toString(),
    versionId,
    segmentId,
    record,
  }));
}

/** Arguments `_month` to `_rate_window` of the functions. */
export function usageValues(event: UsageEvent): readonly unknown[] {
  return [
    event.month,
    event.requests ?? 0,
    event.inputTokens ?? 0n,
    event.documentUpserts ?? 0,
    event.searches ?? 0,
    event.scores ?? 0,
    event.rateWindow === undefined ? null : Buffer.from(event.rateWindow),
  ];
}
