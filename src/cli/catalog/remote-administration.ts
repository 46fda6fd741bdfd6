/** `Administration` that calls the admin API of a service. */
import { z } from 'zod';
import type { ApiKey, AuditEntry, Tenant, UsageDay } from '../../catalog/contract.ts';
import type { Administration } from '../../service/administration.ts';
import type { Maxsimd } from '../../../clients/typescript/src/client.ts';
import { ApiError } from '../../../clients/typescript/src/errors.ts';
import type { ApiRequest } from '../../../clients/typescript/src/transport.ts';
import { issuesInWords } from '../../input/issue-words.ts';
import { clientOf, type OnWait } from '../client.ts';
import { CommandFailure } from '../failure.ts';
import { choiceDocument } from './keys.ts';
import { limitsDocument } from './tenants.ts';

const timeoutMs = 30_000;
const retryMsMax = 10_000;
const pageItems = 1_000;

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
    // Absent from services of the release before.
    name: z.string().nullish(),
    requests_per_minute: z.number().nullish(),
    max_concurrent_requests: z.number().nullish(),
    last_used_at: time.nullish(),
  })
  .transform((key): ApiKey => ({
    id: key.key_id,
    tenantId: key.tenant_id,
    name: key.name ?? undefined,
    access: key.access,
    requestsPerMinute: key.requests_per_minute ?? undefined,
    maxConcurrentRequests: key.max_concurrent_requests ?? undefined,
    createdAtMs: key.created_at,
    revokedAtMs: key.revoked_at ?? undefined,
    lastUsedAtMs: key.last_used_at ?? undefined,
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
    // Absent from services of the release before.
    tenant_name: z.string().nullish(),
    detail: z.record(z.string(), z.unknown()),
  })
  .transform((entry): AuditEntry => ({
    id: entry.id,
    atMs: entry.at,
    actor: entry.actor,
    // A newer service may send further acts.
    act: entry.act as AuditEntry['act'],
    tenantId: entry.tenant_id ?? undefined,
    tenantName: entry.tenant_name ?? undefined,
    detail: entry.detail,
  }));

const madeKeySchema = z.object({ key_id: z.string(), api_key: z.string() });
const deletedSchema = z.object({ indexes: z.number() });

function pageOf<Item>(item: z.ZodType<Item>) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable().optional() });
}

/** Throws a usage error for an invalid address or key. */
export function remoteAdministration(url: string, key: string | undefined, onWait?: OnWait): Administration {
  if (key === undefined) {
    throw new CommandFailure(
      'usage_error',
      'the key of an operator is needed: --admin-key KEY or MAXSIMD_ADMIN_KEY',
    );
  }
  const api = new AdminApi(clientOf({ url, key, timeoutMs, onWait }, retryMsMax));
  return {
    ...tenantOperations(api),
    ...keyOperations(api),
    listAudit: ({ limit, tenantId }) =>
      api.all(auditSchema, ['audit'], tenantId === undefined ? {} : { tenant_id: tenantId }, limit),
  };
}

type Request = Pick<ApiRequest, 'method' | 'path' | 'query' | 'body'>;

/** Sends requests and checks the answers. It ignores unknown fields. */
class AdminApi {
  readonly #client: Maxsimd;

  constructor(client: Maxsimd) {
    this.#client = client;
  }

  async ask<T>(schema: z.ZodType<T>, request: Request): Promise<T> {
    const path = ['admin', 'v1', ...request.path];
    // A repeated POST would make a second tenant or key.
    const isSafe = request.method !== 'POST';
    const result = schema.safeParse(await this.#client.request({ ...request, path, isSafe }));
    if (result.success) return result.data;
    throw new CommandFailure('unexpected_response', `unexpected answer: ${issuesInWords(result.error)}`);
  }

  /** `undefined` for 404. */
  async find<T>(schema: z.ZodType<T>, request: Request): Promise<T | undefined> {
    return this.ask(schema, request).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 'not_found') return undefined;
      throw error;
    });
  }

  /** The items of all pages. */
  async all<Item>(
    item: z.ZodType<Item>,
    path: readonly string[],
    query: Readonly<Record<string, string>> = {},
    most = Infinity,
  ): Promise<readonly Item[]> {
    const items: Item[] = [];
    let cursor: string | null | undefined;
    do {
      const limit = String(Math.min(pageItems, most - items.length));
      const page = await this.ask(pageOf(item), {
        method: 'GET',
        path,
        query: { ...query, limit, ...(cursor && { cursor }) },
      });
      items.push(...page.data);
      cursor = page.next_cursor;
    } while (cursor && items.length < most);
    return items;
  }
}

type KeyOperations = Pick<Administration, 'createKey' | 'listKeys' | 'revokeKey'>;

function tenantOperations(api: AdminApi): Omit<Administration, keyof KeyOperations | 'listAudit'> {
  return {
    async createTenant(name, limits) {
      const schema = z.intersection(tenantSchema, madeKeySchema);
      const body = { name, limits: limitsDocument(limits) };
      const made = await api.ask(schema, { method: 'POST', path: ['tenants'], body });
      const { key_id: keyId, api_key: apiKey, ...tenant } = made;
      return { tenant, keyId, apiKey };
    },

    listTenants: () => api.all(tenantSchema, ['tenants']),

    getTenant: async (id) => api.find(tenantSchema, { method: 'GET', path: ['tenants', id] }),

    setTenantSuspended: async (id, suspended) =>
      api.find(tenantSchema, { method: 'PATCH', path: ['tenants', id], body: { suspended } }),

    setTenantLimits: async (id, limits) =>
      api.find(tenantSchema, {
        method: 'PATCH',
        path: ['tenants', id],
        body: { limits: limitsDocument(limits) },
      }),

    async deleteTenant(id) {
      const deleted = await api.find(deletedSchema, { method: 'DELETE', path: ['tenants', id] });
      return deleted && { indexes: deleted.indexes, filesRemoved: false };
    },

    async usageDays(id, from, to) {
      const path = ['tenants', id, 'usage'];
      const found = await api.find(pageOf(usageDaySchema), { method: 'GET', path, query: { from, to } });
      return found?.data ?? [];
    },
  };
}

function keyOperations(api: AdminApi): KeyOperations {
  return {
    async createKey(tenantId, choice = {}) {
      const schema = z.intersection(keySchema, madeKeySchema);
      const body = choiceDocument(choice);
      const request = { method: 'POST', path: ['tenants', tenantId, 'keys'], body } as const;
      try {
        const made = await api.find(schema, request);
        if (made === undefined) return { outcome: 'tenant_missing' };
        const { key_id: keyId, api_key: apiKey, ...key } = made;
        return { outcome: 'created', key, keyId, apiKey };
      } catch (error) {
        if (error instanceof ApiError && error.issues[0]?.code === 'too_many_keys')
          return { outcome: 'too_many_keys' };
        throw error;
      }
    },

    async listKeys(tenantId) {
      const path = ['tenants', tenantId, 'keys'];
      const found = await api.find(pageOf(keySchema), { method: 'GET', path });
      return found?.data ?? [];
    },

    revokeKey: async (keyId) => api.find(keySchema, { method: 'DELETE', path: ['keys', keyId] }),
  };
}
