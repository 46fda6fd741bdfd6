/**
 * `maxsimd tenant ...`: straight to the catalog in the data directory, beside a running server or without
 * one. A running server follows within the bounded staleness of its caches (5 s).
 */
import { randomUUID } from 'node:crypto';
import type { Catalog, Tenant, TenantLimits } from '../../catalog/contract.ts';
import { defaultLimits } from '../../catalog/default-limits.ts';
import { CommandFailure } from '../failure.ts';
import type { NewApiKey } from './keys.ts';
import { tenantOf } from './names.ts';
import { fields, table, timestamp, type CommandResult } from '../output.ts';

export interface CreateTenant {
  readonly name: string;
  readonly limits: Partial<TenantLimits>;
  readonly newApiKey: () => NewApiKey;
}

export async function createTenant(catalog: Catalog, command: CreateTenant): Promise<CommandResult> {
  const { id: keyId, apiKey, hash } = command.newApiKey();
  const tenant = await catalog.createTenant({
    id: randomUUID(),
    name: command.name,
    limits: { ...defaultLimits, ...command.limits },
    key: { id: keyId, hash },
  });
  return {
    document: {
      tenant_id: tenant.id,
      name: tenant.name,
      api_key: apiKey,
      limits: limitsDocument(tenant.limits),
    },
    text: `${fields([
      ['tenant', `${tenant.id} (${tenant.name})`],
      ['API key', apiKey],
      ...limitPairs(tenant.limits),
    ])}\nThe key is shown this once.`,
  };
}

export async function listTenants(catalog: Catalog): Promise<CommandResult> {
  const tenants = await catalog.listTenants();
  const rows = tenants.map((tenant) => [
    tenant.id,
    tenant.name,
    stateOf(tenant),
    String(tenant.limits.requestsPerMinute),
    String(tenant.limits.maxConcurrentRequests),
    String(tenant.limits.inputTokens),
    String(tenant.limits.documents),
    timestamp(tenant.createdAtMs),
  ]);
  const numeric = ['requests/min', 'concurrent', 'tokens/month', 'documents'];
  return {
    document: { data: tenants.map(tenantDocument) },
    text: table(['tenant', 'name', 'state', ...numeric, 'created'], rows, numeric),
  };
}

export async function setSuspended(
  catalog: Catalog,
  word: string,
  suspended: boolean,
): Promise<CommandResult> {
  const { id } = await tenantOf(catalog, word);
  const tenant = present(await catalog.setTenantSuspended(id, suspended), id);
  return {
    document: tenantDocument(tenant),
    text: `tenant ${tenant.id} (${tenant.name}) is ${stateOf(tenant)}; a running server follows within 5 s`,
  };
}

/** Without changes, shows. */
export async function tenantLimits(
  catalog: Catalog,
  word: string,
  changes: Partial<TenantLimits>,
): Promise<CommandResult> {
  const found = await tenantOf(catalog, word);
  const changed = Object.keys(changes).length > 0;
  const tenant = changed ? present(await catalog.setTenantLimits(found.id, changes), found.id) : found;
  return {
    document: tenantDocument(tenant),
    text: fields([['tenant', `${tenant.id} (${tenant.name})`], ...limitPairs(tenant.limits)]),
  };
}

export interface DeleteTenant {
  /** Identifier or name. */
  readonly tenant: string;
  /** Asks the person; `true` = go on. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** Removes the files of these indexes; `false` when that is left to a running server. */
  readonly purge: (indexIds: readonly string[]) => Promise<boolean>;
}

export async function deleteTenant(catalog: Catalog, command: DeleteTenant): Promise<CommandResult> {
  const tenant = await tenantOf(catalog, command.tenant);
  const agreed = await command.confirm(
    `Erase tenant ${tenant.id} (${tenant.name}) with its keys, indexes, documents and usage? [y/N] `,
  );
  if (!agreed) throw new CommandFailure('not_confirmed', 'nothing was erased');
  const { indexIds } = present(await catalog.deleteTenant(tenant.id), tenant.id);
  const purged = await command.purge(indexIds);
  const files = purged ? '' : '; the running server removes their files within a minute';
  return {
    document: { tenant_id: tenant.id, deleted: true, indexes: indexIds.length, files_removed: purged },
    text: `tenant ${tenant.id} (${tenant.name}) and its ${indexIds.length} indexes are erased${files}`,
  };
}

/** Somebody else may have erased it meanwhile. */
function present<T>(value: T | undefined, tenantId: string): T {
  if (value === undefined) throw new CommandFailure('not_found', `there is no tenant ${tenantId}`);
  return value;
}

function stateOf(tenant: Tenant): string {
  return tenant.suspended ? 'suspended' : 'active';
}

function tenantDocument(tenant: Tenant): object {
  return {
    tenant_id: tenant.id,
    name: tenant.name,
    suspended: tenant.suspended,
    limits: limitsDocument(tenant.limits),
    created_at: timestamp(tenant.createdAtMs),
  };
}

/** Field names and types of `GET /v1/usage`. */
function limitsDocument(limits: TenantLimits): object {
  return {
    requests_per_minute: limits.requestsPerMinute,
    max_concurrent_requests: limits.maxConcurrentRequests,
    input_tokens: String(limits.inputTokens),
    documents: limits.documents,
  };
}

function limitPairs(limits: TenantLimits): readonly (readonly [string, string])[] {
  return [
    ['requests per minute', String(limits.requestsPerMinute)],
    ['concurrent requests', String(limits.maxConcurrentRequests)],
    ['input tokens a month', String(limits.inputTokens)],
    ['stored documents', String(limits.documents)],
  ];
}
