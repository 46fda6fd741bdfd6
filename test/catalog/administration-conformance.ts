/** Tests of every `Catalog` for operators: access of keys, usage by day, the audit log. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Catalog } from '../../src/catalog/contract.ts';
import { unlimitedAllowances } from '../../src/service/limits/unlimited.ts';
import {
  DocumentWriter,
  generousLimits,
  month,
  newIndex,
  newTenant,
  usageOf,
} from '../support/stages/catalog-fixture.ts';
import type { CatalogUnderTest } from './conformance.ts';

const today = (): string => new Date().toISOString().slice(0, 10);
/** `month` is over. */
const lastOfMonth = '2026-10-31';

async function actsOn(catalog: Catalog, tenantId: string): Promise<readonly string[]> {
  return (await catalog.listAudit({ limit: 100, tenantId })).map(({ act }) => act);
}

function newKey(tenantId: string) {
  return { id: randomUUID(), tenantId, hash: new Uint8Array(32) };
}

export function describeAdministration(current: () => CatalogUnderTest): void {
  describe('tenants in pages', () => {
    it('are each listed once, oldest first', async () => {
      const { catalog } = current();
      for (let tenants = 0; tenants < 5; tenants += 1) await newTenant(catalog);
      const all = await catalog.listTenants();
      const seen = [];
      let page = await catalog.listTenants({ limit: 2 });
      while (page.length > 0) {
        seen.push(...page);
        page = await catalog.listTenants({ limit: 2, after: page.at(-1) });
      }
      expect(seen).toEqual(all);
    });
  });

  describe('the limits of a key', () => {
    it('are kept, found with it, and in the audit log; absent ones stay absent', async () => {
      const { catalog } = current();
      const tenant = await newTenant(catalog);
      const limits = { requestsPerMinute: 30, maxConcurrentRequests: 2 };
      const limited = newKey(tenant.id);
      expect(await catalog.createKey({ ...limited, ...limits })).toMatchObject({ key: limits });
      expect((await catalog.findKey(limited.id))?.key).toMatchObject(limits);
      // They are not those of the tenant.
      expect((await catalog.findKey(limited.id))?.tenant.limits).toEqual(tenant.limits);
      const [entry] = await catalog.listAudit({ limit: 1, tenantId: tenant.id });
      expect(entry?.detail).toMatchObject({ requests_per_minute: 30, max_concurrent_requests: 2 });
      expect(await catalog.revokeKey(limited.id)).toMatchObject(limits);
      const half = newKey(tenant.id);
      await catalog.createKey({ ...half, requestsPerMinute: 7 });
      const found = (await catalog.listKeys(tenant.id)).find(({ id }) => id === half.id);
      expect([found?.requestsPerMinute, found?.maxConcurrentRequests]).toEqual([7, undefined]);
    });
  });

  describe('the name of a key', () => {
    it('is kept and found with it, need not be unique, and is in no entry of the audit log', async () => {
      const under = current();
      const tenant = await newTenant(under.catalog);
      const name = `Größe 👩‍🚀 "1" ${'x'.repeat(64 - 14)}`;
      expect(Array.from(name)).toHaveLength(64);
      const [first, second, nameless] = [newKey(tenant.id), newKey(tenant.id), newKey(tenant.id)];
      for (const key of [first, second])
        expect(await under.catalog.createKey({ ...key, name })).toMatchObject({ key: { name } });
      await under.catalog.createKey(nameless);
      await under.reopen();
      const { catalog } = under;
      expect((await catalog.findKey(second.id))?.key.name).toBe(name);
      expect((await catalog.findKey(nameless.id))?.key.name).toBeUndefined();
      expect(await catalog.revokeKey(first.id)).toMatchObject({ name });
      const names = (await catalog.listKeys(tenant.id)).map((key) => [key.id, key.name]);
      expect(new Map(names as [string, string | undefined][])).toEqual(
        new Map([
          [first.id, name],
          [second.id, name],
          [nameless.id, undefined],
        ]),
      );
      expect(JSON.stringify(await catalog.listAudit({ limit: 100, tenantId: tenant.id }))).not.toContain(
        'Größe',
      );
    });

    it.each([
      ['', 'too_small'],
      ['x'.repeat(65), 'too_big'],
      ['👩'.repeat(65), 'too_big'],
      ['a\0', 'control_character'],
      ['a\nb', 'control_character'],
      ['a\ud83d', 'invalid_unicode'],
    ])('is not %j', async (name, code) => {
      const { catalog } = current();
      const tenant = await newTenant(catalog);
      await expect(catalog.createKey({ ...newKey(tenant.id), name })).rejects.toMatchObject({
        code: 'validation_error',
        issues: [{ path: 'name', code }],
      });
      expect(await catalog.listKeys(tenant.id)).toEqual([]);
    });
  });

  describe('the last use of a key', () => {
    const hour = 3_600_000;
    it('is written at most once an hour, never goes back, and stays with the key', async () => {
      const under = current();
      const tenant = await newTenant(under.catalog);
      const [key, other] = [newKey(tenant.id), newKey(tenant.id)];
      for (const one of [key, other]) await under.catalog.createKey(one);
      const lastUse = async () => (await under.catalog.findKey(key.id))?.key.lastUsedAtMs;
      expect(await lastUse()).toBeUndefined();
      const start = Date.now();
      const noted: readonly (readonly [number, number])[] = [
        [start, start],
        [start + hour - 1, start],
        [start - 5 * hour, start],
        [start + hour, start + hour],
        [start + hour, start + hour],
        [start, start + hour],
      ];
      for (const [at, then] of noted) {
        await under.catalog.noteKeyUse(key.id, at);
        expect(await lastUse()).toBe(then);
      }
      // A key that is erased meanwhile.
      await under.catalog.noteKeyUse(randomUUID(), start);
      await under.reopen();
      expect((await under.catalog.revokeKey(key.id))?.lastUsedAtMs).toBe(start + hour);
      const listed = await under.catalog.listKeys(tenant.id);
      expect(listed.find(({ id }) => id === other.id)?.lastUsedAtMs).toBeUndefined();
      expect(await actsOn(under.catalog, tenant.id)).toEqual([
        'key_revoked',
        'key_created',
        'key_created',
        'tenant_created',
      ]);
    });
  });

  describe('allowances that do not limit', () => {
    it('are kept to the last digit, and usage counts against them', async () => {
      const under = current();
      const limits = { ...generousLimits, ...unlimitedAllowances };
      const tenant = await newTenant(under.catalog, limits);
      const writer = await DocumentWriter.start(under.catalog, tenant.id);
      await writer.upsert(['a', 'b']);
      const spent = 2n ** 62n;
      for (let times = 0; times < 2; times += 1) {
        const used = usageOf(tenant.id, { requests: 1, inputTokens: spent - 1000n });
        await under.catalog.recordUsage(used, limits.inputTokens);
      }
      await under.reopen();
      const found = await under.catalog.getTenant(tenant.id);
      expect(found?.limits).toEqual(limits);
      const totals = await under.catalog.usageTotals(tenant.id, month);
      expect(totals.inputTokens).toBeGreaterThanOrEqual(2n * spent - 2000n);
      expect(totals.documents).toBe(2);
      const again = await under.catalog.setTenantLimits(tenant.id, { documents: 5 });
      expect(again?.limits).toEqual({ ...limits, documents: 5 });
      expect((await under.catalog.setTenantLimits(tenant.id, unlimitedAllowances))?.limits).toEqual(limits);
    });
  });

  describe('the name of a tenant', () => {
    const create = (catalog: Catalog, name: string) =>
      catalog.createTenant({ id: randomUUID(), name, limits: generousLimits });
    const refusedAs = (code: string) => ({
      code: 'validation_error',
      issues: [{ path: 'name', code }],
    });

    it.each(['\0', 'a\0b', 'a\nb', '\t', 'a\u007f', 'a\u0085', 'a\u2028'])(
      'holds no control character: %j',
      async (name) => {
        const { catalog } = current();
        await expect(create(catalog, name)).rejects.toMatchObject(refusedAs('control_character'));
        expect((await catalog.listTenants()).map((tenant) => tenant.name)).not.toContain(name);
      },
    );

    it('is well-formed Unicode', async () => {
      await expect(create(current().catalog, 'a\ud83d')).rejects.toMatchObject(refusedAs('invalid_unicode'));
    });

    it('is of one tenant, also when several ask at once, and is free once that is gone', async () => {
      const { catalog } = current();
      const name = `Größe 👩‍🚀 "1" ${randomUUID()}`;
      const made = await Promise.allSettled(Array.from({ length: 5 }, () => create(catalog, name)));
      const tenants = made.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      expect(tenants).toHaveLength(1);
      for (const one of made)
        if (one.status === 'rejected') expect(one.reason).toMatchObject(refusedAs('duplicate'));
      await create(catalog, name.toLowerCase());
      await catalog.deleteTenant(tenants[0]!.id);
      expect((await create(catalog, name)).name).toBe(name);
    });
  });

  describe('indexes in pages', () => {
    it('are each listed once, whatever is deleted while a page is read', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      // A page reads fewer indexes in one turn of the event loop.
      const all = [];
      for (let made = 0; made < 100; made += 1) all.push(await newIndex(catalog, id));
      const gone = new Set<string>();
      const seen: string[] = [];
      let page: Awaited<ReturnType<Catalog['listIndexes']>> = [];
      do {
        const reading = catalog.listIndexes(id, { limit: 40, after: page.at(-1) });
        // Indexes in this page, at its end and in the next page.
        for (const place of [seen.length + 35, seen.length + 39, seen.length + 45]) {
          const index = all[place];
          if (index === undefined) continue;
          gone.add(index.id);
          await catalog.deleteIndex(id, index.id);
        }
        page = await reading;
        seen.push(...page.map((index) => index.id));
      } while (page.length === 40);
      const staying = all.map((index) => index.id).filter((one) => !gone.has(one));
      expect(gone.size).toBeGreaterThan(3);
      expect(seen.filter((one) => !gone.has(one)).toSorted()).toEqual(staying.toSorted());
      expect(new Set(seen).size).toBe(seen.length);
    });
  });

  describe('access of a key', () => {
    it('is full unless the key was made with another one', async () => {
      const under = current();
      const id = randomUUID();
      const key = { id: randomUUID(), hash: new Uint8Array(32) };
      await under.catalog.createTenant({ id, name: 'tenant', limits: generousLimits, key });
      const reading = newKey(id);
      expect(await under.catalog.createKey({ ...reading, access: 'read' })).toMatchObject({
        outcome: 'created',
        key: { access: 'read' },
      });
      await under.reopen();
      const { catalog } = under;
      expect((await catalog.listKeys(id)).map(({ access }) => access).toSorted()).toEqual(['full', 'read']);
      expect((await catalog.findKey(reading.id))?.key.access).toBe('read');
      expect((await catalog.listAudit({ limit: 100, tenantId: id })).at(-1)?.detail).toMatchObject({
        key_id: key.id,
        requests_per_minute: generousLimits.requestsPerMinute,
      });
      expect((await catalog.revokeKey(reading.id))?.access).toBe('read');
    });
  });

  describe('usage by day', () => {
    it('adds up to the month, whichever database holds it', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      const writer = await DocumentWriter.start(catalog, id);
      await writer.upsert(['a', 'b']);
      await catalog.recordUsage(usageOf(id, { requests: 2, searches: 1, inputTokens: 2n ** 60n }));
      await catalog.recordUsage(usageOf(id, { requests: 1, scores: 1, inputTokens: 1n }));
      const { documents: _stored, ...totals } = await catalog.usageTotals(id, month);
      // All of this usage belongs to a month that is over.
      expect(await catalog.usageDays(id, '2026-10-01', '2026-10-31')).toEqual([
        { day: lastOfMonth, ...totals },
      ]);
      expect(totals).toMatchObject({ searches: 1, scores: 1, inputTokens: 2n ** 60n + 1n });
    });

    it('is of today, and of the days that are asked for', async () => {
      const under = current();
      const { id } = await newTenant(under.catalog);
      const before = today();
      const thisMonth = before.slice(0, 7);
      await under.catalog.recordUsage({ ...usageOf(id, { requests: 1 }), month: thisMonth });
      await under.catalog.recordUsage(usageOf(id, { requests: 5 }));
      await under.reopen();
      const { catalog } = under;
      const days = await catalog.usageDays(id, '2000-01-01', '2100-01-01');
      expect(days.map(({ requests }) => requests)).toEqual([5, 1]);
      expect(days[0]?.day).toBe(lastOfMonth);
      expect([before, today()]).toContain(days[1]?.day);
      expect(await catalog.usageDays(id, '2026-10-01', '2026-10-30')).toEqual([]);
      expect(await catalog.usageDays(randomUUID(), '2000-01-01', '2100-01-01')).toEqual([]);
    });

    it('is kept for 400 days, and goes with its tenant', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      for (const old of ['2025-09', '2024-02', '2025-10', '2026-10']) {
        await catalog.recordUsage({ ...usageOf(id, { requests: 1 }), month: old });
      }
      const days = await catalog.usageDays(id, '2000-01-01', '2100-01-01');
      expect(days.map(({ day }) => day)).toEqual(['2025-09-30', '2025-10-31', '2026-10-31']);
      await catalog.deleteTenant(id);
      expect(await catalog.usageDays(id, '2000-01-01', '2100-01-01')).toEqual([]);
    });
  });

  describe('an ended session', () => {
    const hour = 3_600_000;
    const digestOf = (number: number) => new Uint8Array(32).fill(number);
    it('is one from then on, and goes with its key', async () => {
      const under = current();
      const { id } = await newTenant(under.catalog);
      const key = newKey(id);
      await under.catalog.createKey(key);
      const session = { digest: digestOf(1), keyId: key.id, expiresAtMs: Date.now() + hour };
      expect(await under.catalog.hasSessionEnded(session.digest)).toBe(false);
      await under.catalog.endSession(session);
      await under.catalog.endSession(session);
      // The key is erased, or never existed.
      await under.catalog.endSession({ ...session, digest: digestOf(2), keyId: randomUUID() });
      await under.reopen();
      const { catalog } = under;
      expect(await catalog.hasSessionEnded(session.digest)).toBe(true);
      expect(await catalog.hasSessionEnded(digestOf(2))).toBe(false);
      expect(await actsOn(catalog, id)).toEqual(['key_created', 'tenant_created']);
      await catalog.deleteTenant(id);
      expect(await catalog.hasSessionEnded(session.digest)).toBe(false);
    });

    it('is forgotten after it would have expired', async () => {
      const under = current();
      const { id } = await newTenant(under.catalog);
      const key = newKey(id);
      await under.catalog.createKey(key);
      const end = (number: number, expiresAtMs: number) =>
        under.catalog.endSession({ digest: digestOf(number), keyId: key.id, expiresAtMs });
      await end(3, Date.now() - 2 * hour);
      await end(4, Date.now() - hour / 2);
      await end(5, Date.now() + hour);
      await under.reopen();
      await expect.poll(() => under.catalog.hasSessionEnded(digestOf(3))).toBe(false);
      expect(await under.catalog.hasSessionEnded(digestOf(4))).toBe(true);
      expect(await under.catalog.hasSessionEnded(digestOf(5))).toBe(true);
    });
  });

  describe('the audit log', () => {
    it('has each act once, newest first, and stays when its tenant goes', async () => {
      const under = current();
      const { catalog } = under;
      const { id } = await newTenant(catalog, { documents: 7 });
      const key = newKey(id);
      await catalog.createKey({ ...key, access: 'read' });
      await catalog.setTenantSuspended(id, true);
      await catalog.setTenantSuspended(id, false);
      await catalog.setTenantLimits(id, { inputTokens: 2n ** 62n });
      await catalog.revokeKey(key.id);
      // The key is revoked already.
      await catalog.revokeKey(key.id);
      await catalog.deleteTenant(id);
      await under.reopen();
      const entries = await under.catalog.listAudit({ limit: 100, tenantId: id });
      expect(entries.map(({ act }) => act)).toEqual([
        'tenant_deleted',
        'key_revoked',
        'limits_changed',
        'tenant_resumed',
        'tenant_suspended',
        'key_created',
        'tenant_created',
      ]);
      expect(entries[2]?.detail).toEqual({ input_tokens: String(2n ** 62n) });
      expect(entries[5]?.detail).toEqual({ key_id: key.id, access: 'read' });
      expect(entries[6]?.detail).toMatchObject({ documents: 7, requests_per_minute: 60 });
      expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set(['conformance']));
      const ids = entries.map((entry) => entry.id);
      expect(ids).toEqual(ids.toSorted((one, other) => other - one));
    });

    it('names the actor of each act', async () => {
      const { catalog } = current();
      const acts = catalog.actingAs('operator:1');
      const tenant = { id: randomUUID(), name: 'acted', limits: generousLimits };
      await acts.createTenant(tenant);
      const key = newKey(tenant.id);
      await acts.createKey(key);
      await acts.setTenantSuspended(tenant.id, true);
      await acts.setTenantLimits(tenant.id, { documents: 1 });
      await acts.revokeKey(key.id);
      await catalog.setTenantSuspended(tenant.id, false);
      await acts.deleteTenant(tenant.id);
      await acts.noteRefusedLogin({ attempts: 3 });
      const [refused] = await catalog.listAudit({ limit: 1 });
      expect(refused).toMatchObject({
        actor: 'operator:1',
        act: 'login_refused',
        tenantId: undefined,
        detail: { attempts: 3 },
      });
      const entries = await catalog.listAudit({ limit: 100, tenantId: tenant.id });
      expect(entries.map(({ actor }) => actor)).toEqual(
        ['1', 'conformance', '1', '1', '1', '1', '1'].map((by, place) =>
          place === 1 ? by : `operator:${by}`,
        ),
      );
    });

    it('has no entry for an act that did not happen', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      const nobody = randomUUID();
      await catalog.setTenantSuspended(nobody, true);
      await catalog.setTenantLimits(nobody, { documents: 1 });
      await catalog.deleteTenant(nobody);
      await catalog.createKey(newKey(nobody));
      for (let keys = 0; keys < 11; keys += 1) await catalog.createKey(newKey(id));
      await expect(catalog.createTenant({ id, name: 'again', limits: generousLimits })).rejects.toThrow(
        /tenants|UNIQUE/,
      );
      expect(await actsOn(catalog, nobody)).toEqual([]);
      const created = Array.from({ length: 10 }, () => 'key_created');
      expect(await actsOn(catalog, id)).toEqual([...created, 'tenant_created']);
    });

    it('names the tenant of an entry until it is erased', async () => {
      const { catalog } = current();
      const { id, name } = await newTenant(catalog);
      const names = async (tenantId?: string) =>
        (await catalog.listAudit({ limit: 100, tenantId }))
          .filter((entry) => entry.tenantId === id)
          .map(({ tenantName }) => tenantName);
      expect([await names(id), await names()]).toEqual([[name], [name]]);
      await catalog.deleteTenant(id);
      expect([await names(id), await names()]).toEqual([
        [undefined, undefined],
        [undefined, undefined],
      ]);
    });

    it('comes in pages', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      for (let times = 0; times < 4; times += 1) await catalog.setTenantSuspended(id, times % 2 === 0);
      const seen = [];
      let page = await catalog.listAudit({ limit: 2, tenantId: id });
      while (page.length > 0) {
        seen.push(...page);
        page = await catalog.listAudit({ limit: 2, tenantId: id, before: page.at(-1)?.id });
      }
      expect(seen).toEqual(await catalog.listAudit({ limit: 100, tenantId: id }));
      expect(seen).toHaveLength(5);
    });
  });
}
