/** Administration on a catalog and by the admin API: the same calls have the same results. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { remoteAdministration } from '../../src/cli/catalog/remote-administration.ts';
import { apiKeyMatches } from '../../src/catalog/api-key.ts';
import type { Administration } from '../../src/service/administration.ts';
import { listen } from '../support/http/sockets.ts';
import { openAdminStage, type AdminStage } from '../http/admin/admin-stage.ts';

const limits = { requestsPerMinute: 7, inputTokens: 9_007_199_254_740_993n };
const unknownId = '00000000-0000-4000-8000-00000000dead';

describe.each(['on a catalog', 'by the admin API'])('administration %s', (where) => {
  let stage: AdminStage;
  let admin: Administration;

  beforeEach(async () => {
    stage = await openAdminStage();
    admin =
      where === 'on a catalog'
        ? stage.local
        : remoteAdministration(`http://127.0.0.1:${await listen(stage)}`, stage.operatorKey);
  });
  afterEach(async () => stage[Symbol.asyncDispose]());

  it('makes a tenant with limits of its own and a key that is kept as a hash', async () => {
    const { tenant, keyId, apiKey } = await admin.createTenant('Acme', limits);
    expect(tenant).toMatchObject({ name: 'Acme', suspended: false });
    expect(tenant.limits).toEqual({ ...limits, maxConcurrentRequests: 2, documents: 100_000 });
    expect(await admin.getTenant(tenant.id)).toEqual(tenant);
    const record = await stage.catalog.findKey(keyId);
    expect(apiKeyMatches(apiKey, stage.catalog.keyPepper(), record!.hash)).toBe(true);
    expect(record?.key).toMatchObject({ tenantId: tenant.id, access: 'full' });
  });

  it('suspends, resumes and limits one tenant and no other', async () => {
    const { tenant } = await admin.createTenant('one', {});
    const { tenant: other } = await admin.createTenant('other', {});
    expect(await admin.setTenantSuspended(tenant.id, true)).toEqual({ ...tenant, suspended: true });
    expect(await admin.setTenantSuspended(tenant.id, false)).toEqual(tenant);
    const limited = await admin.setTenantLimits(tenant.id, { documents: 0 });
    expect(limited?.limits).toEqual({ ...tenant.limits, documents: 0 });
    expect(await admin.listTenants()).toEqual([limited, other]);
  });

  it('makes ten live keys, lists and revokes them', async () => {
    const { tenant, keyId } = await admin.createTenant('Acme', {});
    const choice = { name: 'Größe 👩‍🚀', access: 'read', requestsPerMinute: 5 } as const;
    const made = await admin.createKey(tenant.id, choice);
    const key = { tenantId: tenant.id, ...choice, lastUsedAtMs: undefined };
    expect(made).toMatchObject({ outcome: 'created', key });
    for (let keys = 2; keys < 10; keys += 1)
      expect(await admin.createKey(tenant.id)).toMatchObject({ outcome: 'created' });
    expect(await admin.createKey(tenant.id)).toEqual({ outcome: 'too_many_keys' });
    const revoked = await admin.revokeKey(keyId);
    expect(revoked?.revokedAtMs).toBeGreaterThan(0);
    expect(await admin.revokeKey(keyId)).toEqual(revoked);
    expect(await admin.createKey(tenant.id)).toMatchObject({ outcome: 'created' });
    const keys = await admin.listKeys(tenant.id);
    expect(keys).toHaveLength(11);
    expect(keys[0]).toEqual(revoked);
    expect(keys.filter(({ access }) => access === 'read')).toEqual([expect.objectContaining(key)]);
    const usedAtMs = Date.now();
    await stage.catalog.noteKeyUse(keyId, usedAtMs);
    expect((await admin.listKeys(tenant.id))[0]).toEqual({ ...revoked, lastUsedAtMs: usedAtMs });
  });

  it.each(['', 'a\nb', 'x'.repeat(65)])('refuses the name %j of a key', async (name) => {
    const { tenant } = await admin.createTenant('Acme', {});
    await expect(admin.createKey(tenant.id, { name })).rejects.toMatchObject({ code: 'validation_error' });
    expect(await admin.listKeys(tenant.id)).toHaveLength(1);
    expect(await admin.createKey(tenant.id, { name: 'x'.repeat(64) })).toMatchObject({ outcome: 'created' });
  });

  it('tells usage by day', async () => {
    const { tenant } = await admin.createTenant('Acme', {});
    const today = new Date().toISOString().slice(0, 10);
    const month = today.slice(0, 7);
    await stage.catalog.recordUsage({
      tenantId: tenant.id,
      month,
      requests: 2,
      searches: 1,
      inputTokens: 5n,
    });
    const day = { inputTokens: 5n, requests: 2, documentUpserts: 0, searches: 1, scores: 0 };
    expect(await admin.usageDays(tenant.id, `${month}-01`, today)).toEqual([{ day: today, ...day }]);
    expect(await admin.usageDays(tenant.id, '2020-01-01', '2020-01-31')).toEqual([]);
  });

  it('erases a tenant, and leaves the acts on it', async () => {
    const { tenant } = await admin.createTenant('secret name', {});
    await admin.createTenant('other', {});
    await admin.setTenantLimits(tenant.id, limits);
    expect(await admin.deleteTenant(tenant.id)).toEqual({ indexes: 0, filesRemoved: false });
    expect(await admin.getTenant(tenant.id)).toBeUndefined();
    const acts = await admin.listAudit({ limit: 10, tenantId: tenant.id });
    expect(acts.map(({ act }) => act)).toEqual(['tenant_deleted', 'limits_changed', 'tenant_created']);
    for (const { actor } of acts) expect(actor).toMatch(/^(server|operator:[0-9a-f]{16})$/);
    expect(JSON.stringify(acts)).not.toContain('secret name');
    expect(await admin.listAudit({ limit: 2 })).toHaveLength(2);
    expect((await admin.listAudit({ limit: 10 })).length).toBeGreaterThan(acts.length);
  });

  it('finds nothing where there is nothing', async () => {
    expect(await admin.getTenant(unknownId)).toBeUndefined();
    expect(await admin.setTenantSuspended(unknownId, true)).toBeUndefined();
    expect(await admin.setTenantLimits(unknownId, limits)).toBeUndefined();
    expect(await admin.deleteTenant(unknownId)).toBeUndefined();
    expect(await admin.createKey(unknownId)).toEqual({ outcome: 'tenant_missing' });
    expect(await admin.revokeKey('nothing')).toBeUndefined();
    expect(await admin.listAudit({ limit: 10 })).toEqual([]);
  });
});
