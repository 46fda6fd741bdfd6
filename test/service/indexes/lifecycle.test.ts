/** Admission, indexes, readiness, erasure, draining, restarting. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { generateApiKey, hashApiKey } from '../../../src/catalog/api-key.ts';
import { ServiceError } from '../../../src/errors.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { openServiceStage, rejection, type ServiceStage } from '../../support/stages/service-stage.ts';

describe('the service', () => {
  let stage: ServiceStage;
  beforeAll(async () => {
    stage = await openServiceStage();
  });
  afterAll(() => stage[Symbol.asyncDispose]());

  describe('admission', () => {
    it('says how to send a key when there is none', async () => {
      expect(await rejection(stage.service.admit(undefined))).toMatchObject({
        message: expect.stringContaining('Authorization: Bearer') as string,
      });
    });

    it('applies the limits of a key beside those of its tenant, and says which one refused', async () => {
      const { tenant, apiKey } = await stage.newTenant({ requestsPerMinute: 9, maxConcurrentRequests: 2 });
      const limited = generateApiKey();
      await stage.catalog.createKey({
        id: limited.id,
        tenantId: tenant.id,
        hash: hashApiKey(limited.apiKey, stage.catalog.keyPepper()),
        requestsPerMinute: 3,
        maxConcurrentRequests: 1,
      });
      const admit = (secret: string) => stage.service.admit(`Bearer ${secret}`);
      const first = await admit(limited.apiKey);
      expect(first.rate).toMatchObject({ limit: 3, remaining: 2 });
      expect(await rejection(admit(limited.apiKey))).toMatchObject({
        code: 'concurrency_limit_exceeded',
        message: 'the API key has 1 requests in flight, which is its limit',
        tenantId: tenant.id,
      });
      // The other key has the second slot of the tenant, and the rest of its rate.
      const second = await admit(apiKey);
      expect(second.rate).toEqual({ limit: 9, remaining: 6, resetSeconds: 60 });
      first.permit.release();
      const third = await admit(apiKey);
      // The key has a slot, and the tenant has none.
      expect(await rejection(admit(limited.apiKey))).toMatchObject({
        code: 'concurrency_limit_exceeded',
        message: 'the tenant has 2 requests in flight, which is its limit',
      });
      expect(await rejection(admit(limited.apiKey))).toMatchObject({
        code: 'rate_limit_exceeded',
        message: 'the API key has used its 3 requests of this minute',
        rate: { limit: 3, remaining: 0, resetSeconds: 60 },
      });
      second.permit.release();
      third.permit.release();
      stage.clock.ms += 60_000;
      // A slot that was refused for the tenant is free again.
      (await admit(limited.apiKey)).permit.release();
      (await admit(limited.apiKey)).permit.release();
    });

    it('refuses no request for a slot that is released while it waits for other threads, and counts it once', async () => {
      const { apiKey } = await stage.newTenant({ requestsPerMinute: 9, maxConcurrentRequests: 1 });
      const { permit } = await stage.service.admit(`Bearer ${apiKey}`);
      const next = await stage.service.admit(`Bearer ${apiKey}`, async () => permit.release());
      expect(next.rate.remaining).toBe(7);
      expect(await rejection(stage.service.admit(`Bearer ${apiKey}`, async () => undefined))).toMatchObject({
        code: 'concurrency_limit_exceeded',
      });
      next.permit.release();
    });

    it('refuses a suspended tenant with 403, always, and counts the answers within its rate', async () => {
      const { apiKey, tenant, context } = await stage.newTenant({ requestsPerMinute: 2 });
      await stage.catalog.setTenantSuspended(tenant.id, true);
      const refuse = async (times: number): Promise<void> => {
        for (let request = 0; request < times; request += 1) {
          expect(await rejection(stage.service.admit(`Bearer ${apiKey}`))).toMatchObject({
            code: 'tenant_suspended',
            httpStatus: 403,
          });
        }
      };
      await refuse(5);
      expect((await stage.service.usage(context())).usage.requests).toBe(2);
      stage.clock.ms += 60_000;
      await refuse(3);
      expect((await stage.service.usage(context())).usage.requests).toBe(4);
    });

    it('refuses a suspended tenant with 403 also while the ledger cannot be written', async () => {
      const { apiKey, tenant } = await stage.newTenant();
      await stage.catalog.setTenantSuspended(tenant.id, true);
      const failure = new ServiceError('service_unavailable', 'the usage ledger is not available now');
      const record = vi.spyOn(stage.catalog, 'recordUsage').mockRejectedValueOnce(failure);
      expect(await rejection(stage.service.admit(`Bearer ${apiKey}`))).toMatchObject({
        code: 'tenant_suspended',
      });
      expect(record).toHaveBeenCalledOnce();
      expect(stage.errors.splice(0)).toEqual([failure]);
    });
  });

  describe('indexes', () => {
    it('of an erased tenant lose their files with the next upkeep', async () => {
      const { tenant, createIndex, upsert } = await stage.newTenant();
      const id = await createIndex();
      await upsert(id, { a: 'one' });
      await stage.catalog.deleteTenant(tenant.id);
      expect(await readdir(path.join(stage.directory, 'segments'))).toContain(id);
      await stage.service.maintain();
      expect(await readdir(path.join(stage.directory, 'segments'))).not.toContain(id);
    });

    it('that are damaged answer 500 and say so in their status', async () => {
      const { tenant, context, createIndex } = await stage.newTenant();
      const id = await createIndex();
      await stage.catalog.setIndexStatus(id, 'error');
      const query = { query: 'w', returnComponents: false };
      expect(await rejection(stage.service.search(context(), id, query))).toMatchObject({
        code: 'internal_error',
      });
      expect((await stage.catalog.getIndex(tenant.id, id))?.status).toBe('error');
    });
  });

  it('is ready while catalog, disk and encoder are', async () => {
    expect(await stage.service.readiness()).toEqual({
      ready: true,
      checks: { catalog: 'ok', encoder: 'ok', disk: 'ok', draining: 'ok' },
    });
    const { served } = stage.encoder;
    stage.encoder.served = [];
    expect(await stage.service.readiness()).toMatchObject({ ready: false, checks: { catalog: 'ok' } });
    const { createIndex } = await stage.newTenant();
    expect(await rejection(createIndex())).toMatchObject({ code: 'service_unavailable' });
    stage.encoder.served = served;
  });

  it('counts an answered request exactly once', async () => {
    const { context, createIndex, search } = await stage.newTenant();
    const id = await createIndex();
    await search(id, 'w');
    const plain = context();
    await stage.service.countRequest(plain);
    await stage.service.countRequest(plain);
    const searching = context();
    await stage.service.search(searching, id, { query: 'w', returnComponents: false });
    await stage.service.countRequest(searching);
    expect((await stage.service.usage(context())).usage).toMatchObject({ requests: 3, searches: 2 });
  });

  it('reports what its open indexes hold', async () => {
    const { createIndex, upsert } = await stage.newTenant();
    const before = stage.service.statistics();
    await upsert(await createIndex(), { a: 'one two', b: 'three' });
    const after = stage.service.statistics();
    expect(after.openIndexes).toBe(before.openIndexes + 1);
    expect(after.recordsLive).toBe(before.recordsLive + 2);
  });
});

describe('a service that drains', () => {
  it('admits nobody, waits for the requests it has, and closes what is below it', async () => {
    const stage = await openServiceStage();
    const { apiKey, createIndex, upsert } = await stage.newTenant();
    const id = await createIndex();
    const { permit } = await stage.service.admit(`Bearer ${apiKey}`);
    const draining = stage.service.drain();
    expect(await rejection(stage.service.admit(`Bearer ${apiKey}`))).toMatchObject({
      code: 'service_unavailable',
      retryAfterSeconds: 1,
    });
    expect(await stage.service.readiness()).toMatchObject({ ready: false });
    // The request that was admitted is served to its end.
    expect((await upsert(id, { a: 'one' })).upsertedDocuments).toBe(1);
    expect(stage.encoder.closed).toBe(false);
    permit.release();
    await draining;
    expect(stage.encoder.closed).toBe(true);
    await stage[Symbol.asyncDispose]();
  });
});

describe('a service that starts again', () => {
  it('finds everything it acknowledged, and removes what a crash left behind', async () => {
    const directory = await newDirectory();
    const first = await openServiceStage(directory);
    const tenant = await first.newTenant();
    const id = await tenant.createIndex();
    await tenant.upsert(id, { a: 'red', b: 'green', c: 'blue' });
    await first.service.deleteDocument(tenant.context(), id, 'b');
    const before = await tenant.search(id, 'red');
    await first.service.drain();
    const orphan = path.join(directory, 'segments', '0b6cdd9e-orphan');
    await writeFile(path.join(directory, 'segments', id, '77777.seg'), 'left by a crash');
    await mkdir(orphan);
    await writeFile(path.join(orphan, '1.seg'), 'left by a crash');
    const second = await openServiceStage(directory);
    await expect(readdir(orphan)).rejects.toThrow(/ENOENT/);
    const again = await second.service.search(tenant.context(), id, {
      query: 'red',
      returnComponents: false,
    });
    expect(again.results).toEqual(before.results);
    expect(await readdir(path.join(directory, 'segments', id))).not.toContain('77777.seg');
    const { usage } = await second.service.usage(tenant.context());
    expect(usage).toMatchObject({ documents: 2, documentUpserts: 3, searches: 2, inputTokens: 5n });
    await second.service.drain();
  });
});
