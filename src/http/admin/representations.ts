/** The bodies of the admin API's answers. */
import type { z } from 'zod';
import type { ApiKey, AuditEntry, Tenant, UsageTotals } from '../../catalog/contract.ts';
import { unlimitedNames } from '../../service/limits/unlimited.ts';
import { limitsBody, timestamp, usageCountsBody } from '../routes/representations.ts';
import { cursorOf } from '../schemas/pages.ts';
import type * as schemas from './schemas.ts';

export function tenantBody(tenant: Tenant): z.output<typeof schemas.Tenant> {
  return {
    tenant_id: tenant.id,
    name: tenant.name,
    suspended: tenant.suspended,
    limits: limitsBody(tenant.limits),
    unlimited: unlimitedNames(tenant.limits),
    created_at: timestamp(tenant.createdAtMs),
  };
}

export interface ListedTenant {
  readonly tenant: Tenant;
  /** The counts of this month. */
  readonly usage: UsageTotals;
}

export function listedTenantBody({
  tenant,
  usage,
}: ListedTenant): z.output<typeof schemas.TenantList>['data'][number] {
  return { ...tenantBody(tenant), usage: usageCountsBody(usage) };
}

export function keyBody(key: ApiKey): z.output<typeof schemas.Key> {
  return {
    key_id: key.id,
    tenant_id: key.tenantId,
    name: key.name ?? null,
    access: key.access,
    requests_per_minute: key.requestsPerMinute ?? null,
    max_concurrent_requests: key.maxConcurrentRequests ?? null,
    created_at: timestamp(key.createdAtMs),
    revoked_at: timestampOrNull(key.revokedAtMs),
    last_used_at: timestampOrNull(key.lastUsedAtMs),
  };
}

function timestampOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : timestamp(ms);
}

export function auditBody(entry: AuditEntry): z.output<typeof schemas.AuditList>['data'][number] {
  return {
    id: entry.id,
    at: timestamp(entry.atMs),
    actor: entry.actor,
    act: entry.act,
    tenant_id: entry.tenantId ?? null,
    tenant_name: entry.tenantName ?? null,
    detail: { ...entry.detail },
  };
}

/** A page of `found`, which holds one item more than the page if there is another page. */
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
