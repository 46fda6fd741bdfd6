/** What operators are shown, on the wire. */
import type { z } from 'zod';
import type { ApiKey, AuditEntry, Tenant, TenantLimits } from '../../catalog/contract.ts';
import { cursorOf } from '../schemas/pages.ts';
import type { TenantLimits as TenantLimitsSchema } from '../schemas/usage.ts';
import type * as schemas from './schemas.ts';

export function tenantBody(tenant: Tenant): z.output<typeof schemas.Tenant> {
  return {
    tenant_id: tenant.id,
    name: tenant.name,
    suspended: tenant.suspended,
    limits: limitsBody(tenant.limits),
    created_at: timestamp(tenant.createdAtMs),
  };
}

function limitsBody(limits: TenantLimits): z.output<typeof TenantLimitsSchema> {
  return {
    input_tokens: String(limits.inputTokens),
    documents: limits.documents,
    requests_per_minute: limits.requestsPerMinute,
    max_concurrent_requests: limits.maxConcurrentRequests,
  };
}

export function keyBody(key: ApiKey): z.output<typeof schemas.Key> {
  return {
    key_id: key.id,
    tenant_id: key.tenantId,
    access: key.access,
    created_at: timestamp(key.createdAtMs),
    revoked_at: key.revokedAtMs === undefined ? null : timestamp(key.revokedAtMs),
  };
}

export function auditBody(entry: AuditEntry): z.output<typeof schemas.AuditList>['data'][number] {
  return {
    id: entry.id,
    at: timestamp(entry.atMs),
    actor: entry.actor,
    act: entry.act,
    tenant_id: entry.tenantId ?? null,
    detail: { ...entry.detail },
  };
}

/** A page of what was found, of which one more than the page was asked for. */
export function page<Item, Body>(
  found: readonly Item[],
  limit: number,
  bodyOf: (item: Item) => Body,
  placeOf: (item: Item) => string,
): { data: Body[]; next_cursor: string | null } {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const hasMore = found.length > limit && last !== undefined;
  return { data: items.map(bodyOf), next_cursor: hasMore ? cursorOf(placeOf(last)) : null };
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
