/** `Administration` by the admin API of a service. */
import { z } from 'zod';
import type { ApiKey, AuditEntry, Tenant, TenantLimits, UsageDay } from '../../catalog/contract.ts';
import type { Administration } from '../../service/administration.ts';
import { checked } from '../api/checked.ts';
import { endpointOf } from '../api/endpoint.ts';
import { exchangeWith, type ApiRequest } from '../api/exchange.ts';
import { ApiFailure } from '../api/failure.ts';
import { pathSegment } from '../api/path-segment.ts';
import { Retrying, type OnWait } from '../api/retry.ts';
import { CommandFailure } from '../failure.ts';

const timeoutMs = 30_000;
const pageItems = 1_000;
/** Only what can be asked again; a tenant or a key must not be made twice. */
const policy = { unavailableMsMax: 10_000, brokenAttemptsMax: 1 };

const time = z.iso.datetime().transform((text) => Date.parse(text));

const tenantSchema = z
  .object({
    tenant_id: z.string(),
    name: z.string(),
    suspended: z.boolean(),
    limits: z.object({
      input_tokens: z.string(),
      documents: z.number(),
      requests_per_minute: z.number(),
      max_concurrent_requests: z.number(),
    }),
    created_at: time,
  })
  .transform(({ tenant_id: id, name, suspended, limits, created_at: createdAtMs }): Tenant => ({
    id,
    name,
    suspended,
    limits: {
      requestsPerMinute: limits.requests_per_minute,
      maxConcurrentRequests: limits.max_concurrent_requests,
      inputTokens: BigInt(limits.input_tokens),
      documents: limits.documents,
    },
    createdAtMs,
  }));

const keySchema = z
  .object({
    key_id: z.string(),
    tenant_id: z.string(),
    access: z.enum(['full', 'read']),
    created_at: time,
    revoked_at: time.nullable(),
  })
  .transform((key): ApiKey => ({
    id: key.key_id,
    tenantId: key.tenant_id,
    access: key.access,
    createdAtMs: key.created_at,
    revokedAtMs: key.revoked_at ?? undefined,
  }));

const usageDaySchema = z
  .object({
    day: z.string(),
    input_tokens: z.string(),
    requests: z.number(),
    document_upserts: z.number(),
    searches: z.number(),
    scores: z.number(),
  })
  .transform((day): UsageDay => ({
    day: day.day,
    inputTokens: BigInt(day.input_tokens),
    requests: day.requests,
    documentUpserts: day.document_upserts,
    searches: day.searches,
    scores: day.scores,
  }));

const auditSchema = z
  .object({
    id: z.number(),
    at: time,
    actor: z.string(),
    act: z.string(),
    tenant_id: z.string().nullable(),
    detail: z.record(z.string(), z.unknown()),
  })
  .transform((entry): AuditEntry => ({
    id: entry.id,
    atMs: entry.at,
    actor: entry.actor,
    // A newer service may know more acts.
    act: entry.act as AuditEntry['act'],
    tenantId: entry.tenant_id ?? undefined,
    detail: entry.detail,
  }));

const madeKeySchema = z.object({ key_id: z.string(), api_key: z.string() });
const deletedSchema = z.object({ indexes: z.number() });

function pageOf<Item>(item: z.ZodType<Item>) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable().optional() });
}

/** Throws a usage error for an address or a key that cannot be one. */
export function remoteAdministration(url: string, key: string | undefined, onWait?: OnWait): Administration {
  if (key === undefined) {
    throw new CommandFailure(
      'usage_error',
      'the key of an operator is needed: --admin-key KEY or MAXSIMD_ADMIN_KEY',
    );
  }
  const exchange = exchangeWith(endpointOf(url, key, timeoutMs));
  const retrying = new Retrying({ policy, onWait });

  async function ask<T>(schema: z.ZodType<T>, request: ApiRequest): Promise<T> {
    const path = `/admin/v1${request.path}`;
    const send = () => exchange({ ...request, path });
    return checked(schema, await (request.method === 'POST' ? send() : retrying.run(send)));
  }

  /** `undefined` for 404. */
  async function find<T>(schema: z.ZodType<T>, request: ApiRequest): Promise<T | undefined> {
    return ask(schema, request).catch((error: unknown) => {
      if (error instanceof ApiFailure && error.code === 'not_found') return undefined;
      throw error;
    });
  }

  async function all<Item>(item: z.ZodType<Item>, path: string, most = Infinity): Promise<readonly Item[]> {
    const items: Item[] = [];
    let cursor: string | null | undefined;
    do {
      const limit = Math.min(pageItems, most - items.length);
      const query = new URLSearchParams({ limit: String(limit), ...(cursor && { cursor }) });
      const separator = path.includes('?') ? '&' : '?';
      const page = await ask(pageOf(item), { method: 'GET', path: `${path}${separator}${query.toString()}` });
      items.push(...page.data);
      cursor = page.next_cursor;
    } while (cursor && items.length < most);
    return items;
  }

  return {
    async createTenant(name, limits) {
      const schema = z.intersection(tenantSchema, madeKeySchema);
      const body = JSON.stringify({ name, limits: limitsBody(limits) });
      const made = await ask(schema, { method: 'POST', path: '/tenants', body });
      const { key_id: keyId, api_key: apiKey, ...tenant } = made;
      return { tenant, keyId, apiKey };
    },

    listTenants: () => all(tenantSchema, '/tenants'),

    getTenant: async (id) => find(tenantSchema, { method: 'GET', path: tenantPath(id) }),

    setTenantSuspended: async (id, suspended) =>
      find(tenantSchema, { method: 'PATCH', path: tenantPath(id), body: JSON.stringify({ suspended }) }),

    setTenantLimits: async (id, limits) =>
      find(tenantSchema, {
        method: 'PATCH',
        path: tenantPath(id),
        body: JSON.stringify({ limits: limitsBody(limits) }),
      }),

    async deleteTenant(id) {
      const deleted = await find(deletedSchema, { method: 'DELETE', path: tenantPath(id) });
      return deleted && { indexes: deleted.indexes, filesRemoved: false };
    },

    async createKey(tenantId, access) {
      const schema = z.intersection(keySchema, madeKeySchema);
      const body = JSON.stringify({ access });
      try {
        const made = await find(schema, { method: 'POST', path: `${tenantPath(tenantId)}/keys`, body });
        if (made === undefined) return { outcome: 'tenant_missing' };
        const { key_id: keyId, api_key: apiKey, ...created } = made;
        return { outcome: 'created', key: created, keyId, apiKey };
      } catch (error) {
        if (error instanceof ApiFailure && error.issues[0]?.code === 'too_many_keys')
          return { outcome: 'too_many_keys' };
        throw error;
      }
    },

    async listKeys(tenantId) {
      const found = await find(pageOf(keySchema), { method: 'GET', path: `${tenantPath(tenantId)}/keys` });
      return found?.data ?? [];
    },

    revokeKey: async (keyId) => find(keySchema, { method: 'DELETE', path: `/keys/${pathSegment(keyId)}` }),

    async usageDays(tenantId, from, to) {
      const query = new URLSearchParams({ from, to }).toString();
      const path = `${tenantPath(tenantId)}/usage?${query}`;
      const found = await find(pageOf(usageDaySchema), { method: 'GET', path });
      return found?.data ?? [];
    },

    listAudit: ({ limit, tenantId }) =>
      all(
        auditSchema,
        tenantId === undefined ? '/audit' : `/audit?tenant_id=${encodeURIComponent(tenantId)}`,
        limit,
      ),
  };
}

function tenantPath(tenantId: string): string {
  return `/tenants/${pathSegment(tenantId)}`;
}

function limitsBody(limits: Partial<TenantLimits>): object {
  return {
    requests_per_minute: limits.requestsPerMinute,
    max_concurrent_requests: limits.maxConcurrentRequests,
    input_tokens: limits.inputTokens === undefined ? undefined : String(limits.inputTokens),
    documents: limits.documents,
  };
}
