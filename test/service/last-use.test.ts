/** The last use of a key: it is written once an hour, by one of the nodes, and no request waits for it. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseApiKey } from '../../src/catalog/api-key.ts';
import type { Admission } from '../../src/service/admission.ts';
import { admissionOfAnotherNode } from '../support/stages/another-node.ts';
import { openServiceStage, type ServiceStage, type TenantStage } from '../support/stages/service-stage.ts';

const minute = 60_000;
const hour = 60 * minute;

let stage: ServiceStage;
let owner: TenantStage;
/** The times of the writes that were asked for, by any node. */
let asked: number[];
beforeEach(async () => {
  stage = await openServiceStage();
  owner = await stage.newTenant();
  asked = [];
  const note = stage.catalog.noteKeyUse.bind(stage.catalog);
  stage.catalog.noteKeyUse = (keyId, atMs) => {
    asked.push(atMs);
    return note(keyId, atMs);
  };
});
afterEach(() => stage[Symbol.asyncDispose]());

async function use(node: Pick<Admission, 'admit'>): Promise<void> {
  (await node.admit(`Bearer ${owner.apiKey}`)).permit.release();
}

/** The last use that the catalog knows, once all writes before have ended. */
async function lastUse(): Promise<number | undefined> {
  await stage.catalog.ping();
  return (await stage.catalog.findKey(parseApiKey(owner.apiKey)!.id))?.key.lastUsedAtMs;
}

it('is that of a request at most an hour before', async () => {
  const node = await admissionOfAnotherNode(stage);
  const start = stage.clock.ms;
  expect(await lastUse()).toBeUndefined();
  for (let requests = 0; requests < 10; requests += 1) await use(node);
  expect(await lastUse()).toBe(start);
  expect(asked).toEqual([start]);
  stage.clock.ms = start + hour - 1;
  await use(node);
  // The node reads the key again.
  node.forgetAll();
  await use(node);
  expect(asked).toEqual([start]);
  stage.clock.ms = start + hour;
  for (let requests = 0; requests < 10; requests += 1) await use(node);
  expect(await lastUse()).toBe(start + hour);
  expect(asked).toEqual([start, start + hour]);
});

it('is written once by two nodes that serve the key at once', async () => {
  const nodes = [await admissionOfAnotherNode(stage), await admissionOfAnotherNode(stage)];
  const start = stage.clock.ms;
  await Promise.all(nodes.map(use));
  expect(await lastUse()).toBe(start);
  stage.clock.ms += minute;
  // Their caches still say that it was never used, or was read before the other has written.
  for (const node of nodes) {
    node.forgetAll();
    await use(node);
  }
  expect(await lastUse()).toBe(start);
  stage.clock.ms = start + hour;
  await Promise.all([...nodes, ...nodes].map(use));
  expect(await lastUse()).toBe(start + hour);
  expect(stage.errors).toEqual([]);
});

it('counts sessions of the console, and requests that a limit of the tenant refuses, but no wrong key', async () => {
  const session = await stage.service.openSession(`Bearer ${owner.apiKey}`);
  const wrong = owner.apiKey.slice(0, -1) + (owner.apiKey.endsWith('x') ? 'y' : 'x');
  await expect(stage.service.admit(`Bearer ${wrong}`)).rejects.toMatchObject({
    code: 'authentication_failed',
  });
  expect(await lastUse()).toBeUndefined();
  (await stage.service.admitSession(session)).permit.release();
  expect(await lastUse()).toBe(stage.clock.ms);
  await stage.catalog.setTenantSuspended(owner.tenant.id, true);
  stage.clock.ms += hour;
  const node = await admissionOfAnotherNode(stage);
  await expect(use(node)).rejects.toMatchObject({ code: 'tenant_suspended' });
  expect(await lastUse()).toBe(stage.clock.ms);
});

it('keeps no request waiting, and is tried again where it failed', async () => {
  const write = stage.catalog.noteKeyUse.bind(stage.catalog);
  const stuck = Promise.withResolvers<void>();
  stage.catalog.noteKeyUse = () => stuck.promise;
  const node = await admissionOfAnotherNode(stage);
  await use(node);
  const failure = new Error('the catalog is away');
  stuck.reject(failure);
  await expect.poll(() => stage.errors).toEqual([failure]);
  expect(await lastUse()).toBeUndefined();
  stage.catalog.noteKeyUse = write;
  node.forgetAll();
  await use(node);
  expect(await lastUse()).toBe(stage.clock.ms);
});
