/** `maxsimd tenant ...`. A running server applies a change within 5 s, the maximum age of its caches. */
import type { Tenant, TenantLimits, UsageDay } from '../../catalog/contract.ts';
import { isUnlimited, unlimitedNames, type Allowance } from '../../service/limits/unlimited.ts';
import type { Administration } from '../../service/administration.ts';
import type { Confirm } from '../confirm.ts';
import { CommandFailure } from '../failure.ts';
import { tenantOf } from './names.ts';
import { csv, fields, table, timestamp, type CommandResult } from '../output.ts';

export interface CreateTenant {
  readonly name: string;
  readonly limits: Partial<TenantLimits>;
}

export async function createTenant(
  administration: Administration,
  { name, limits }: CreateTenant,
): Promise<CommandResult> {
  const { tenant, apiKey } = await administration.createTenant(name, limits);
  return {
    document: {
      tenant_id: tenant.id,
      name: tenant.name,
      api_key: apiKey,
      limits: limitsDocument(tenant.limits),
      unlimited: unlimitedNames(tenant.limits),
    },
    text: `${fields([
      ['tenant', `${tenant.id} (${tenant.name})`],
      ['API key', apiKey],
      ...limitPairs(tenant.limits),
    ])}\nThe key is shown this once.`,
  };
}

export async function listTenants(administration: Administration): Promise<CommandResult> {
  const tenants = await administration.listTenants();
  const rows = tenants.map((tenant) => [
    tenant.id,
    tenant.name,
    stateOf(tenant),
    String(tenant.limits.requestsPerMinute),
    String(tenant.limits.maxConcurrentRequests),
    allowanceText(tenant.limits, 'inputTokens'),
    allowanceText(tenant.limits, 'documents'),
    timestamp(tenant.createdAtMs),
  ]);
  const numeric = ['requests/min', 'concurrent', 'tokens/month', 'documents'];
  return {
    document: { data: tenants.map(tenantDocument) },
    text: table(['tenant', 'name', 'state', ...numeric, 'created'], rows, numeric),
  };
}

export async function setSuspended(
  administration: Administration,
  word: string,
  suspended: boolean,
): Promise<CommandResult> {
  const { id } = await tenantOf(administration, word);
  const tenant = present(await administration.setTenantSuspended(id, suspended), id);
  return {
    document: tenantDocument(tenant),
    text: `tenant ${tenant.id} (${tenant.name}) is ${stateOf(tenant)}; a running server follows within 5 s`,
  };
}

/** Changes the limits that are given, and shows all of them. */
export async function tenantLimits(
  administration: Administration,
  word: string,
  changes: Partial<TenantLimits>,
): Promise<CommandResult> {
  const found = await tenantOf(administration, word);
  const changed = Object.keys(changes).length > 0;
  const tenant = changed ? present(await administration.setTenantLimits(found.id, changes), found.id) : found;
  return {
    document: tenantDocument(tenant),
    text: fields([['tenant', `${tenant.id} (${tenant.name})`], ...limitPairs(tenant.limits)]),
  };
}

export async function deleteTenant(
  administration: Administration,
  word: string,
  confirm: Confirm,
): Promise<CommandResult> {
  const tenant = await tenantOf(administration, word);
  await confirm(`Erase tenant ${tenant.id} (${tenant.name}) with its keys, indexes, documents and usage?`);
  const { indexes, filesRemoved } = present(await administration.deleteTenant(tenant.id), tenant.id);
  const files = filesRemoved ? '' : '; the running server removes their files within a minute';
  return {
    document: { tenant_id: tenant.id, deleted: true, indexes, files_removed: filesRemoved },
    text: `tenant ${tenant.id} (${tenant.name}) and its ${indexes} indexes are erased${files}`,
  };
}

export interface DayRange {
  /** Days in UTC, `YYYY-MM-DD`, both included. */
  readonly from: string;
  readonly to: string;
}

export async function tenantUsage(
  administration: Administration,
  word: string,
  { from, to }: DayRange,
): Promise<CommandResult> {
  const tenant = await tenantOf(administration, word);
  const days = await administration.usageDays(tenant.id, from, to);
  const numeric = ['input tokens', 'requests', 'upserted documents', 'searches', 'scores'];
  const rows = days.map((day) => Object.values(usageDayDocument(day)).map(String));
  return {
    document: { tenant_id: tenant.id, from, to, data: days.map(usageDayDocument) },
    text: table(['day (UTC)', ...numeric], rows, numeric),
  };
}

/** The usage of one tenant, or of all, as CSV: a row a tenant and day. */
export async function usageCsv(
  administration: Administration,
  word: string | undefined,
  { from, to }: DayRange,
): Promise<CommandResult> {
  const tenants =
    word === undefined ? await administration.listTenants() : [await tenantOf(administration, word)];
  const data: (UsageDayDocument & { readonly tenant_id: string; readonly tenant: string })[] = [];
  for (const { id, name } of tenants) {
    const days = await administration.usageDays(id, from, to);
    data.push(...days.map((day) => ({ tenant_id: id, tenant: name, ...usageDayDocument(day) })));
  }
  const rows = data.map((row) => Object.values(row).map(String));
  return { document: { from, to, data }, text: csv(['tenant_id', 'tenant', ...usageDayColumns], rows) };
}

/** In the order of `usageDayDocument`. */
export const usageDayColumns = [
  'day',
  'input_tokens',
  'requests',
  'document_upserts',
  'searches',
  'scores',
] as const;

type UsageDayDocument = Readonly<Record<(typeof usageDayColumns)[number], string | number>>;

function usageDayDocument(day: UsageDay): UsageDayDocument {
  return {
    day: day.day,
    input_tokens: String(day.inputTokens),
    requests: day.requests,
    document_upserts: day.documentUpserts,
    searches: day.searches,
    scores: day.scores,
  };
}

/** Another operator may have erased the tenant meanwhile. */
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
    unlimited: unlimitedNames(tenant.limits),
    created_at: timestamp(tenant.createdAtMs),
  };
}

/** Field names and types of the API. JSON leaves out what is not given. */
export function limitsDocument(limits: Partial<TenantLimits>) {
  return {
    requests_per_minute: limits.requestsPerMinute,
    max_concurrent_requests: limits.maxConcurrentRequests,
    input_tokens: limits.inputTokens?.toString(),
    documents: limits.documents,
  };
}

function limitPairs(limits: TenantLimits): readonly (readonly [string, string])[] {
  return [
    ['requests per minute', String(limits.requestsPerMinute)],
    ['concurrent requests', String(limits.maxConcurrentRequests)],
    ['input tokens a month', allowanceText(limits, 'inputTokens')],
    ['stored documents', allowanceText(limits, 'documents')],
  ];
}

function allowanceText(limits: TenantLimits, allowance: Allowance): string {
  return isUnlimited(limits, allowance) ? 'unlimited' : String(limits[allowance]);
}
