/**
 * Tests that every implementation of `Catalog` must pass. `describeCatalog` runs all of them on one implementation. This file has
 * those of tenants, keys, indexes and usage. Documents and segments have files of their own.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Catalog } from '../../src/catalog/contract.ts';
import { describeAdministration } from './administration-conformance.ts';
import { describeDocuments } from './document-conformance.ts';
import { describeExpiry } from './expiry-conformance.ts';
import {
  DocumentWriter,
  generousLimits,
  indexInput,
  month,
  newIndex,
  newTenant,
  usageOf,
} from '../support/stages/catalog-fixture.ts';
import { describeMatchFields } from './match-fields-conformance.ts';
import { describeModel } from './model-conformance.ts';
import { describeSegments } from './segment-conformance.ts';

/** A catalog, and a way to close it and open it again. */
export interface CatalogUnderTest {
  readonly catalog: Catalog;
  reopen(): Promise<void>;
  dispose(): Promise<void>;
}

export function describeCatalog(name: string, start: () => Promise<CatalogUnderTest>): void {
  describe(`catalog conformance: ${name}`, () => {
    let under: CatalogUnderTest;
    const current = (): CatalogUnderTest => under;
    beforeAll(async () => {
      under = await start();
    });
    afterAll(async () => {
      await under.dispose();
    });

    describeTenants(current);
    describeKeys(current);
    describeIndexes(current);
    describeUsage(current);
    describeAdministration(current);
    describeDocuments(current);
    describeExpiry(current);
    describeMatchFields(current);
    describeSegments(current);
    describeModel(current);
  });
}

function describeTenants(current: () => CatalogUnderTest): void {
  describe('tenants', () => {
    it('are found and listed as they were created', async () => {
      const { catalog } = current();
      const id = randomUUID();
      const limits = {
        requestsPerMinute: 7,
        maxConcurrentRequests: 3,
        inputTokens: 2n ** 62n,
        documents: 2 ** 40,
      };
      const before = Date.now();
      const tenant = await catalog.createTenant({ id, name: 'Größe "1"', limits });
      expect(tenant).toMatchObject({ id, name: 'Größe "1"', suspended: false, limits });
      expect(tenant.createdAtMs).toBeGreaterThanOrEqual(before);
      expect(tenant.createdAtMs).toBeLessThanOrEqual(Date.now());
      expect(await catalog.getTenant(id)).toEqual(tenant);
      expect(await catalog.listTenants()).toContainEqual(tenant);
    });

    it('can be suspended and resumed', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      expect(await catalog.setTenantSuspended(id, true)).toMatchObject({ id, suspended: true });
      expect(await catalog.getTenant(id)).toMatchObject({ suspended: true });
      expect(await catalog.setTenantSuspended(id, false)).toMatchObject({ suspended: false });
      expect(await catalog.setTenantSuspended(randomUUID(), true)).toBeUndefined();
    });

    it('keep the limits that a change leaves out', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      const changed = await catalog.setTenantLimits(id, { inputTokens: 5n, documents: 0 });
      expect(changed?.limits).toEqual({ ...generousLimits, inputTokens: 5n, documents: 0 });
      expect(await catalog.getTenant(id)).toEqual(changed);
      expect(await catalog.setTenantLimits(randomUUID(), {})).toBeUndefined();
    });

    it('are erased with their keys, indexes, documents and usage', async () => {
      const { catalog } = current();
      const { id } = await newTenant(catalog);
      const keyId = randomUUID();
      await catalog.createKey({ id: keyId, tenantId: id, hash: new Uint8Array(32) });
      const writer = await DocumentWriter.start(catalog, id);
      const [version] = await writer.upsert(['a']);
      const other = await newIndex(catalog, id);
      await catalog.recordUsage(usageOf(id, { requests: 1, searches: 1, inputTokens: 3n }));
      await writer.delete('absent', { requests: 1 });

      const deleted = await catalog.deleteTenant(id);
      expect(deleted?.indexIds.toSorted()).toEqual([writer.index.id, other.id].toSorted());
      expect(await catalog.getTenant(id)).toBeUndefined();
      expect(await catalog.findKey(keyId)).toBeUndefined();
      expect(await catalog.listKeys(id)).toEqual([]);
      expect(await catalog.listIndexes(id)).toEqual([]);
      expect(await catalog.listIndexIds()).not.toContain(other.id);
      expect(await catalog.resolveVersions(writer.index.id, [version?.versionId ?? 0])).toEqual(new Map());
      expect(await catalog.usageTotals(id, month)).toEqual({
        inputTokens: 0n,
        requests: 0,
        documentUpserts: 0,
        searches: 0,
        scores: 0,
        documents: 0,
      });
      expect(await catalog.deleteTenant(id)).toBeUndefined();
      await expect(catalog.createIndex(indexInput(id, 'late'), 10)).rejects.toMatchObject({
        code: 'authentication_failed',
      });
    });
  });
}

function describeKeys(current: () => CatalogUnderTest): void {
  describe('keys', () => {
    it('are found with their hash and tenant', async () => {
      const { catalog } = current();
      const id = randomUUID();
      const hash = Uint8Array.from({ length: 32 }, (_, place) => place * 8);
      const tenant = await catalog.createTenant({
        id: randomUUID(),
        name: 'with key',
        limits: generousLimits,
        key: { id, hash },
      });
      const found = await catalog.findKey(id);
      expect(found?.tenant).toEqual(tenant);
      expect(Uint8Array.from(found?.hash ?? [])).toEqual(hash);
      expect(found?.key).toMatchObject({ id, tenantId: tenant.id, revokedAtMs: undefined });
      expect(await catalog.findKey(randomUUID())).toBeUndefined();
    });

    it('are at most ten live ones a tenant', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const create = () => catalog.createKey({ id: randomUUID(), tenantId, hash: new Uint8Array(32) });
      const first = await create();
      if (first.outcome !== 'created') throw new Error(first.outcome);
      for (let keys = 1; keys < 10; keys += 1) expect(await create()).toMatchObject({ outcome: 'created' });
      expect(await create()).toEqual({ outcome: 'too_many_keys' });
      const revoked = await catalog.revokeKey(first.key.id);
      expect(revoked?.revokedAtMs).toBeGreaterThanOrEqual(first.key.createdAtMs);
      expect(await create()).toMatchObject({ outcome: 'created' });
      expect(await create()).toEqual({ outcome: 'too_many_keys' });
      expect(await catalog.listKeys(tenantId)).toHaveLength(11);
    });

    it('stay found when revoked, with the time of the first revocation', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const id = randomUUID();
      await catalog.createKey({ id, tenantId, hash: new Uint8Array(32) });
      const revoked = await catalog.revokeKey(id);
      expect(await catalog.revokeKey(id)).toEqual(revoked);
      expect((await catalog.findKey(id))?.key).toEqual(revoked);
      expect(await catalog.revokeKey(randomUUID())).toBeUndefined();
    });

    it('belong to a tenant that exists', async () => {
      const { catalog } = current();
      const key = { id: randomUUID(), tenantId: randomUUID(), hash: new Uint8Array(32) };
      expect(await catalog.createKey(key)).toEqual({ outcome: 'tenant_missing' });
    });
  });
}

function describeIndexes(current: () => CatalogUnderTest): void {
  describe('indexes', () => {
    it('are returned as created, oldest first', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const inputs = ['b', 'a', 'c'].map((name) => indexInput(tenantId, name));
      for (const input of inputs) {
        const result = await catalog.createIndex(input, 10);
        expect(result).toMatchObject({ outcome: 'created', index: { ...input, status: 'ready' } });
      }
      const listed = await catalog.listIndexes(tenantId);
      expect(listed.map(({ name }) => name)).toEqual(['b', 'a', 'c']);
      expect(await catalog.getIndex(tenantId, inputs[1]?.id ?? '')).toEqual(listed[1]);
      expect(await catalog.listIndexIds()).toEqual(expect.arrayContaining(inputs.map(({ id }) => id)));
    });

    it('are counted by the model version that they have', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const model = `model-${randomUUID()}`;
      for (const [name, modelVersion] of Object.entries({ a: '1', b: '2', c: '2' })) {
        await catalog.createIndex({ ...indexInput(tenantId, name), model, modelVersion }, 10);
      }
      const counted = await catalog.listModelVersions();
      expect(counted.filter((each) => each.model === model)).toEqual([
        { model, modelVersion: '2', indexes: 2 },
        { model, modelVersion: '1', indexes: 1 },
      ]);
    });

    it('are listed in turns with other work, however long the list', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const inputs = Array.from({ length: 200 }, (_, place) => indexInput(tenantId, `n${place}`));
      await Promise.all(inputs.map((input) => catalog.createIndex(input, 200)));
      let turns = 0;
      let listing = true;
      const turn = (): void => {
        turns += 1;
        if (listing) setImmediate(turn);
      };
      setImmediate(turn);
      const listed = await catalog.listIndexes(tenantId);
      listing = false;
      expect(new Set(listed.map(({ id }) => id))).toEqual(new Set(inputs.map(({ id }) => id)));
      expect(turns).toBeGreaterThan(3);
    });

    it('have names of their own within the tenant, free again after deletion', async () => {
      const { catalog } = current();
      const [one, two] = [await newTenant(catalog), await newTenant(catalog)];
      const first = indexInput(one.id, 'name');
      expect(await catalog.createIndex(first, 10)).toMatchObject({ outcome: 'created' });
      const index = await catalog.getIndex(one.id, first.id);
      expect(await catalog.createIndex(indexInput(one.id, 'name'), 10)).toEqual({
        outcome: 'duplicate_name',
        index,
      });
      expect(await catalog.createIndex(indexInput(one.id, 'Name'), 10)).toMatchObject({ outcome: 'created' });
      expect(await catalog.createIndex(indexInput(two.id, 'name'), 10)).toMatchObject({ outcome: 'created' });
      expect(await catalog.deleteIndex(one.id, first.id)).toBe(true);
      expect(await catalog.createIndex(indexInput(one.id, 'name'), 10)).toMatchObject({ outcome: 'created' });
    });

    it('are found by their names within the tenant, as they are at that moment', async () => {
      const { catalog } = current();
      const [one, two] = [await newTenant(catalog), await newTenant(catalog)];
      const names = ['Größe\0"1"', 'name:a/b', '100%', '書籍 📚'];
      for (const name of names) {
        const input = indexInput(one.id, name);
        await catalog.createIndex(input, 10);
        expect(await catalog.findIndexId(one.id, name)).toBe(input.id);
        expect(await catalog.findIndexId(two.id, name)).toBeUndefined();
      }
      expect(await catalog.findIndexId(one.id, '')).toBeUndefined();
      expect(await catalog.findIndexId(one.id, 'größe\0"1"')).toBeUndefined();
      const index = await newIndex(catalog, one.id);
      const other = await newIndex(catalog, one.id);
      await catalog.swapIndexNames(one.id, index.id, other.id);
      expect(await catalog.findIndexId(one.id, index.name)).toBe(other.id);
      await catalog.updateIndex(one.id, other.id, { name: 'renamed' });
      expect(await catalog.findIndexId(one.id, index.name)).toBeUndefined();
      expect(await catalog.findIndexId(one.id, 'renamed')).toBe(other.id);
      await catalog.deleteIndex(one.id, other.id);
      expect(await catalog.findIndexId(one.id, 'renamed')).toBeUndefined();
    });

    it('are listed in pages, although others are created and deleted in between', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      for (const name of ['a', 'b', 'c', 'd', 'e']) await catalog.createIndex(indexInput(tenantId, name), 10);
      const all = await catalog.listIndexes(tenantId);
      const byPlace = all.toSorted(
        (one, other) => one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1),
      );
      const first = await catalog.listIndexes(tenantId, { limit: 2 });
      expect(first).toEqual(byPlace.slice(0, 2));
      // The last place of a page stays valid when its index is deleted.
      await catalog.deleteIndex(tenantId, first[1]!.id);
      expect(await catalog.listIndexes(tenantId, { limit: 2, after: first[1]! })).toEqual(
        byPlace.slice(2, 4),
      );
      expect(await catalog.listIndexes(tenantId, { limit: 9, after: byPlace[3]! })).toEqual(byPlace.slice(4));
      expect(await catalog.listIndexes(tenantId, { limit: 9, after: byPlace[4]! })).toEqual([]);
      expect(await catalog.listIndexes(randomUUID(), { limit: 9 })).toEqual([]);
    });

    it('are renamed, if the name is free within the tenant', async () => {
      const { catalog } = current();
      const [one, two] = [await newTenant(catalog), await newTenant(catalog)];
      const index = await newIndex(catalog, one.id);
      const other = await newIndex(catalog, one.id);
      const renamed = { ...index, name: 'Größe\0"1"' };
      expect(await catalog.updateIndex(one.id, index.id, { name: renamed.name })).toEqual({
        outcome: 'updated',
        index: renamed,
      });
      expect(await catalog.getIndex(one.id, index.id)).toEqual(renamed);
      expect(await catalog.updateIndex(one.id, index.id, { name: renamed.name })).toMatchObject({
        outcome: 'updated',
      });
      expect(await catalog.updateIndex(one.id, index.id, { name: other.name })).toEqual({
        outcome: 'duplicate_name',
      });
      expect(await catalog.updateIndex(two.id, index.id, { name: 'stolen' })).toEqual({
        outcome: 'index_missing',
      });
      expect(await catalog.updateIndex(one.id, randomUUID(), { name: 'nobody' })).toEqual({
        outcome: 'index_missing',
      });
      expect(await catalog.getIndex(one.id, index.id)).toEqual(renamed);
      expect(await catalog.createIndex(indexInput(one.id, index.name), 10)).toMatchObject({
        outcome: 'created',
      });
    });

    it('swap names, so that a name never means neither', async () => {
      const { catalog } = current();
      const [one, two] = [await newTenant(catalog), await newTenant(catalog)];
      const index = await newIndex(catalog, one.id);
      const other = await newIndex(catalog, one.id);
      const foreign = await newIndex(catalog, two.id);
      const swapped = new AbortController();
      const namesSeen = (async () => {
        const seen = new Set<string>();
        while (!swapped.signal.aborted) {
          const listed = await catalog.listIndexes(one.id);
          seen.add(JSON.stringify(listed.map(({ name }) => name).toSorted()));
          await nextTurn();
        }
        return seen;
      })();
      for (let swaps = 0; swaps < 20; swaps += 1) {
        const { name } = swaps % 2 === 0 ? other : index;
        expect(await catalog.swapIndexNames(one.id, index.id, other.id)).toEqual({ ...index, name });
      }
      swapped.abort();
      expect([...(await namesSeen)]).toEqual([JSON.stringify([index.name, other.name].toSorted())]);
      expect(await catalog.swapIndexNames(one.id, index.id, foreign.id)).toBeUndefined();
      expect(await catalog.swapIndexNames(two.id, index.id, other.id)).toBeUndefined();
      expect(await catalog.swapIndexNames(one.id, index.id, randomUUID())).toBeUndefined();
      expect(await catalog.listIndexes(one.id)).toEqual([index, other]);
      expect(await catalog.listIndexes(two.id)).toEqual([foreign]);
    });

    it('have unique names however many are made, renamed and swapped at once', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const [a, b, c, d] = [
        await newIndex(catalog, tenantId),
        await newIndex(catalog, tenantId),
        await newIndex(catalog, tenantId),
        await newIndex(catalog, tenantId),
      ];
      const results = await Promise.all([
        ...[a, b, c, d].map(({ id }) => catalog.updateIndex(tenantId, id, { name: 'wanted' })),
        catalog.createIndex(indexInput(tenantId, 'wanted'), 10),
        catalog.swapIndexNames(tenantId, a.id, b.id),
        catalog.swapIndexNames(tenantId, c.id, d.id),
        catalog.swapIndexNames(tenantId, b.id, c.id),
        catalog.swapIndexNames(tenantId, c.id, b.id),
      ]);
      const named = results.filter((result) => /^(updated|created)$/.test(outcomeOf(result)));
      // An index that got a name by a swap may be renamed to the same name.
      expect(named.length).toBeGreaterThan(0);
      const names = (await catalog.listIndexes(tenantId)).map(({ name }) => name);
      expect(names).toContain('wanted');
      expect(new Set(names).size).toBe(names.length);
    });

    it('are bounded in number', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      expect(await catalog.createIndex(indexInput(tenantId, 'a'), 1)).toMatchObject({ outcome: 'created' });
      expect(await catalog.createIndex(indexInput(tenantId, 'b'), 1)).toEqual({
        outcome: 'too_many_indexes',
      });
    });

    it('of another tenant do not exist', async () => {
      const { catalog } = current();
      const [owner, stranger] = [await newTenant(catalog), await newTenant(catalog)];
      const { index } = await DocumentWriter.start(catalog, owner.id);
      expect(await catalog.getIndex(stranger.id, index.id)).toBeUndefined();
      expect(await catalog.deleteIndex(stranger.id, index.id)).toBe(false);
      expect(await catalog.getIndex(owner.id, index.id)).toEqual(index);
    });

    it('change their status', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const index = await newIndex(catalog, tenantId);
      await catalog.setIndexStatus(index.id, 'error');
      expect(await catalog.getIndex(tenantId, index.id)).toEqual({ ...index, status: 'error' });
    });

    it('are gone at once when deleted, and their documents no longer count', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const kept = await DocumentWriter.start(catalog, tenantId);
      const deleted = await DocumentWriter.start(catalog, tenantId);
      await kept.upsert(['a']);
      const [version] = await deleted.upsert(['a', 'b', 'c']);
      expect((await catalog.usageTotals(tenantId, month)).documents).toBe(4);
      expect(await catalog.deleteIndex(tenantId, deleted.index.id)).toBe(true);
      expect(await catalog.deleteIndex(tenantId, deleted.index.id)).toBe(false);
      expect((await catalog.usageTotals(tenantId, month)).documents).toBe(1);
      expect((await catalog.listIndexes(tenantId)).map(({ id }) => id)).toEqual([kept.index.id]);
      expect(await catalog.countStored(deleted.index.id, ['a'])).toBe(0);
      expect(await catalog.resolveVersions(deleted.index.id, [version?.versionId ?? 0])).toEqual(new Map());
      await expect(catalog.loadIndexState(deleted.index.id)).rejects.toMatchObject({ code: 'not_found' });
      expect(await deleted.commit(await deleted.versions(['d']))).toEqual({ outcome: 'index_missing' });
      expect(await deleted.delete('a')).toEqual({ outcome: 'index_missing' });
    });
  });
}

function outcomeOf(result: object | undefined): string {
  return result !== undefined && 'outcome' in result ? String(result.outcome) : '';
}

function describeUsage(current: () => CatalogUnderTest): void {
  describe('usage', () => {
    it('adds up over both kinds of requests, by month', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const writer = await DocumentWriter.start(catalog, tenantId);
      const usage = usageOf(tenantId, { requests: 1, inputTokens: 2n ** 60n, documentUpserts: 2 });
      await writer.commit(await writer.versions(['a', 'b']), { usage });
      await writer.delete('a', { requests: 1 });
      await Promise.all([
        catalog.recordUsage(usageOf(tenantId, { requests: 1, searches: 1, inputTokens: 2n ** 60n + 1n })),
        catalog.recordUsage(usageOf(tenantId, { requests: 1, scores: 1, inputTokens: 3n })),
        catalog.recordUsage({ tenantId, month: '2026-11', requests: 1, searches: 1 }),
      ]);
      expect(await catalog.usageTotals(tenantId, month)).toEqual({
        inputTokens: 2n ** 61n + 4n,
        requests: 4,
        documentUpserts: 2,
        searches: 1,
        scores: 1,
        documents: 1,
      });
      expect(await catalog.usageTotals(tenantId, '2026-11')).toMatchObject({ requests: 1, inputTokens: 0n });
    });

    it('is not charged for a commit that does not happen', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const writer = await DocumentWriter.start(catalog, tenantId);
      const usage = usageOf(tenantId, { requests: 1, inputTokens: 5n });
      const documents = await writer.versions(['a', 'b']);
      await writer.commit(documents, { usage, documentsMax: 1 });
      await writer.delete('absent', { requests: 1 });
      const twice = await writer.versions(['c', 'c']);
      await expect(writer.commit(twice, { usage })).rejects.toThrow(/bug/);
      expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 0, inputTokens: 0n });
    });

    it('loses nothing when many events arrive at once', async () => {
      const { catalog } = current();
      const { id: tenantId } = await newTenant(catalog);
      const event = usageOf(tenantId, { requests: 1, searches: 1, inputTokens: 7n });
      await Promise.all(Array.from({ length: 500 }, () => catalog.recordUsage(event)));
      expect(await catalog.usageTotals(tenantId, month)).toMatchObject({ requests: 500, inputTokens: 3500n });
    });

    it('is zero for a tenant that does not exist', async () => {
      expect(await current().catalog.usageTotals(randomUUID(), month)).toMatchObject({ requests: 0 });
    });

    it('answers a ping while it can write', async () => {
      await expect(current().catalog.ping()).resolves.toBeUndefined();
    });
  });
}
