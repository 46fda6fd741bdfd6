/** `/admin/v1`: operators manage tenants and keys, and read usage and the audit log. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { TenantLimits } from '../../catalog/contract.ts';
import { invalid, ServiceError, type ErrorCode } from '../../errors.ts';
import { liveKeysMax, tooManyKeys, type LocalAdministration } from '../../service/administration.ts';
import { monthOf } from '../../service/calendar-month.ts';
import { answers } from '../routes/answers.ts';
import { creationPlaceText, pageItemsDefault } from '../schemas/pages.ts';
import { dayRange, UsageDays, UsageDaysQuery } from '../schemas/usage.ts';
import { usageDaysBody, usageDaysDescription } from '../routes/usage.ts';
import {
  auditBody,
  keyBody,
  listedTenantBody,
  page,
  tenantBody,
  type ListedTenant,
} from './representations.ts';
import {
  AuditList,
  AuditQuery,
  CreatedKey,
  CreatedTenant,
  CreateKeyBody,
  CreateTenantBody,
  DeletedTenant,
  Key,
  KeyList,
  KeyParams,
  Tenant,
  TenantInUse,
  TenantList,
  TenantListQuery,
  TenantParams,
  UpdateTenantBody,
} from './schemas.ts';

const errors = [
  'authentication_failed',
  'validation_error',
  'service_unavailable',
] as const satisfies readonly ErrorCode[];
const withMissing = [...errors, 'not_found'] as const;

type AdministrationOf = (operator: string) => LocalAdministration;
/** Memory that the engine of this process has for a tenant. */
export type MemoryBytesOf = (tenantId: string) => number;

export const adminRoutes = [tenantRoutes, tenantChanges, keyRoutes, auditRoutes];

function tenantRoutes(
  administrationOf: AdministrationOf,
  memoryBytesOf: MemoryBytesOf,
): FastifyPluginAsyncZod {
  return async (app) => {
    app.post('/tenants', {
      schema: {
        operationId: 'createTenant',
        summary: 'Make a tenant and its first API key',
        description: 'Not idempotent: if the answer is lost, list the tenants before you send it again.',
        tags: ['tenants'],
        body: CreateTenantBody,
        response: answers({ 201: [CreatedTenant, 'Made; `Location` holds its address.'] }, errors),
      },
      handler: async ({ body, scope }, reply) => {
        const { tenant, keyId, apiKey } = await administrationOf(scope.operator).createTenant(
          body.name,
          limitsOf(body.limits),
        );
        reply.code(201).header('location', `tenants/${tenant.id}`);
        return { ...tenantBody(tenant), key_id: keyId, api_key: apiKey };
      },
    });

    app.get('/tenants', {
      schema: {
        operationId: 'listTenants',
        summary: 'List tenants',
        description: 'Returns a page of tenants with their usage of this month, in order of creation.',
        tags: ['tenants'],
        querystring: TenantListQuery,
        response: answers({ 200: [TenantList, 'Tenants, oldest first.'] }, errors),
      },
      handler: async ({ query, scope }) => {
        const { limit = pageItemsDefault, cursor } = query;
        const administration = administrationOf(scope.operator);
        const month = monthOf(Date.now());
        const found: ListedTenant[] = [];
        // One after the other: a list must not take the connections that requests of tenants need.
        for (const tenant of await administration.listTenants({ after: cursor, limit: limit + 1 }))
          found.push({ tenant, usage: await administration.usageTotals(tenant.id, month) });
        return page(found, limit, listedTenantBody, ({ tenant }) => creationPlaceText(tenant));
      },
    });

    app.get('/tenants/:tenant_id', {
      schema: {
        operationId: 'getTenant',
        summary: 'Get a tenant',
        description: 'Returns the tenant, its limits and the memory that it has in this process.',
        tags: ['tenants'],
        params: TenantParams,
        response: answers({ 200: [TenantInUse, 'The tenant.'] }, withMissing),
      },
      handler: async ({ params, scope }) => {
        const found = await administrationOf(scope.operator).getTenant(params.tenant_id);
        const tenant = present(found, 'tenant');
        return { ...tenantBody(tenant), memory_bytes: memoryBytesOf(tenant.id) };
      },
    });
  };
}

function tenantChanges(administrationOf: AdministrationOf): FastifyPluginAsyncZod {
  return async (app) => {
    app.patch('/tenants/:tenant_id', {
      schema: {
        operationId: 'updateTenant',
        summary: 'Suspend or resume a tenant, or change its limits',
        description: 'The service follows within 5 s.',
        tags: ['tenants'],
        params: TenantParams,
        body: UpdateTenantBody,
        response: answers({ 200: [Tenant, 'The tenant as it is now.'] }, withMissing),
      },
      handler: async ({ params, body, scope }) => {
        const { tenant_id: id } = params;
        const changed =
          body.suspended === undefined
            ? await administrationOf(scope.operator).setTenantLimits(id, limitsOf(body.limits))
            : await administrationOf(scope.operator).setTenantSuspended(id, body.suspended);
        return tenantBody(present(changed, 'tenant'));
      },
    });

    app.delete('/tenants/:tenant_id', {
      schema: {
        operationId: 'deleteTenant',
        summary: 'Erase a tenant with its keys, indexes, documents and usage',
        description:
          'The tenant is gone at once and cannot be brought back. Its files are gone within a minute. The audit log stays.',
        tags: ['tenants'],
        params: TenantParams,
        response: answers({ 200: [DeletedTenant, 'Erased.'] }, withMissing),
      },
      handler: async ({ params, scope }) => {
        const { indexes } = present(
          await administrationOf(scope.operator).deleteTenant(params.tenant_id),
          'tenant',
        );
        return { deleted: true as const, indexes };
      },
    });

    app.get('/tenants/:tenant_id/usage', {
      schema: {
        operationId: 'usageDays',
        summary: 'Usage of a tenant by day',
        description: usageDaysDescription,
        tags: ['tenants'],
        params: TenantParams,
        querystring: UsageDaysQuery,
        response: answers({ 200: [UsageDays, 'Days, oldest first.'] }, withMissing),
      },
      handler: async ({ params, query, scope }) => {
        const { from, to } = dayRange(query, Date.now());
        const { id } = present(await administrationOf(scope.operator).getTenant(params.tenant_id), 'tenant');
        return usageDaysBody(await administrationOf(scope.operator).usageDays(id, from, to));
      },
    });
  };
}

function keyRoutes(administrationOf: AdministrationOf): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/tenants/:tenant_id/keys', {
      schema: {
        operationId: 'listKeys',
        summary: 'List the API keys of a tenant',
        description: 'Includes revoked keys. The secrets are never shown.',
        tags: ['keys'],
        params: TenantParams,
        response: answers({ 200: [KeyList, 'Keys, oldest first.'] }, withMissing),
      },
      handler: async ({ params, scope }) => {
        const { id } = present(await administrationOf(scope.operator).getTenant(params.tenant_id), 'tenant');
        return { data: (await administrationOf(scope.operator).listKeys(id)).map(keyBody) };
      },
    });

    app.post('/tenants/:tenant_id/keys', {
      schema: {
        operationId: 'createKey',
        summary: 'Make an API key',
        description: `A tenant has at most ${liveKeysMax} live keys.`,
        tags: ['keys'],
        params: TenantParams,
        body: CreateKeyBody,
        response: answers({ 201: [CreatedKey, 'Made; its text is shown this once.'] }, withMissing),
      },
      handler: async ({ params, body, scope }, reply) => {
        const created = await administrationOf(scope.operator).createKey(params.tenant_id, {
          name: body.name ?? undefined,
          access: body.access,
          requestsPerMinute: body.requests_per_minute,
          maxConcurrentRequests: body.max_concurrent_requests,
        });
        if (created.outcome === 'tenant_missing') throw missing('tenant');
        if (created.outcome === 'too_many_keys') throw invalid('', tooManyKeys, 'too_many_keys');
        reply.code(201);
        return { ...keyBody(created.key), api_key: created.apiKey };
      },
    });

    app.delete('/keys/:key_id', {
      schema: {
        operationId: 'revokeKey',
        summary: 'Revoke an API key',
        description: 'The service refuses the key (401) within 5 s. Revoking it again changes nothing.',
        tags: ['keys'],
        params: KeyParams,
        response: answers({ 200: [Key, 'The key, revoked.'] }, withMissing),
      },
      handler: async ({ params, scope }) =>
        keyBody(present(await administrationOf(scope.operator).revokeKey(params.key_id), 'key')),
    });
  };
}

function auditRoutes(administrationOf: AdministrationOf): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/audit', {
      schema: {
        operationId: 'listAudit',
        summary: 'What was done to tenants and keys, by whom and when',
        description: 'Includes what was done by the command line. The newest 100,000 entries are kept.',
        tags: ['audit'],
        querystring: AuditQuery,
        response: answers({ 200: [AuditList, 'Acts, newest first.'] }, errors),
      },
      handler: async ({ query, scope }) => {
        const { tenant_id: tenantId, limit = pageItemsDefault, cursor } = query;
        const found = await administrationOf(scope.operator).listAudit({
          tenantId,
          before: cursor,
          limit: limit + 1,
        });
        return page(found, limit, auditBody, ({ id }) => String(id));
      },
    });
  };
}

function limitsOf(limits: (typeof CreateTenantBody)['_output']['limits']): Partial<TenantLimits> {
  const { requests_per_minute, max_concurrent_requests, input_tokens, documents } = limits ?? {};
  return {
    ...(requests_per_minute !== undefined && { requestsPerMinute: requests_per_minute }),
    ...(max_concurrent_requests !== undefined && { maxConcurrentRequests: max_concurrent_requests }),
    ...(input_tokens !== undefined && { inputTokens: BigInt(input_tokens) }),
    ...(documents !== undefined && { documents }),
  };
}

function present<T>(value: T | undefined, what: 'tenant' | 'key'): T {
  if (value === undefined) throw missing(what);
  return value;
}

function missing(what: 'tenant' | 'key'): ServiceError {
  return new ServiceError('not_found', `no such ${what}`);
}
