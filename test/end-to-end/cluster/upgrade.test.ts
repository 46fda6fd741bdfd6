/** Nodes of two versions serve side by side, and new indexes are such that both can search them. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { startCluster, startNode, type LocalCluster } from '../../../deploy/local/cluster.ts';
import { nodeLiveMs } from '../../../src/catalog/cluster-contract.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { catalogMigrations } from '../../../src/catalog/postgres/schema.ts';
import { HttpNode } from '../../support/cluster/history/http-node.ts';
import { Load } from '../../support/cluster/history/load.ts';
import { newKeyedTenant } from '../../support/cluster/history/tenants.ts';
import { queryDatabase, serversMs } from '../../support/cluster/servers.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { connect, expectError } from '../../support/running/client.ts';
import { hangMs } from '../../support/running/eventually.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';

/** Each has one request under way at most. */
const clients = 8;
const operations = 100;
const preloaded = pathToFileURL(path.resolve('test/support/cluster/next-version.ts')).href;

let cluster: LocalCluster;
beforeAll(async () => {
  cluster = await startCluster({ directory: await newDirectory(), nodes: 1, balance: 'turns' });
}, serversMs);
afterAll(() => cluster.stop());

/** A tenant of its own, and the catalog of the cluster. */
async function startClient() {
  const { MAXSIMD_CATALOG_URL: url = '', MAXSIMD_KEY_PEPPER_FILE: pepperFile = '' } = cluster.environment;
  const keyPepper = await readFile(pepperFile);
  const catalog = await openPostgresCatalog({ url, keyPepper });
  onTestFinished(() => catalog.close());
  const tenant = await newKeyedTenant(catalog, keyPepper, { inputTokens: 1_000_000_000_000n });
  return { url, catalog, tenant, client: connect(cluster.nodes[0]!.url, tenant.apiKey) };
}

/** Clients that write, delete and search at the old node, and at whatever node is added, and check what they find. */
async function startLoad() {
  const old = new HttpNode(cluster.nodes[0]!);
  const { url, tenant, client } = await startClient();
  const { id: indexId } = await makeIndex(client);
  const nodes = [old];
  const seed = Date.now() % 1_000_000;
  const load = new Load({ nodes, writer: { ...tenant, indexId }, random: seededRandom(seed) });
  console.log(`seed ${seed}`);
  const loading = load.run();
  loading.catch(() => undefined);
  const more = async (): Promise<void> => {
    const before = load.operations;
    await expect.poll(() => load.operations).toBeGreaterThan(before + operations);
  };
  return { url, old, nodes, load, loading, more: () => Promise.race([loading, more()]) };
}

async function startNext(migration: 'expanding' | 'lying'): Promise<HttpNode> {
  const node = await startNode(path.join(await newDirectory(), 'next'), {
    ...cluster.environment,
    NODE_OPTIONS: `--import=${preloaded}`,
    TEST_MIGRATION: migration,
  });
  onTestFinished(() => node.stop());
  return new HttpNode(node);
}

it('a new index has the newest version of the model that every node serves, and match fields once every node knows them', async () => {
  const { client, catalog } = await startClient();
  const makeNext = async (): Promise<string> => (await makeIndex(client)).model_version;
  expect(await makeNext()).toBe('2');
  // The release before says nothing of models.
  const report = JSON.stringify({
    version: '0.0.0',
    cache: { bytes: 0, bytes_max: 1, files: 0 },
    indexes: { open: 0, behind_max: 0 },
  });
  const old = { id: randomUUID(), name: 'old:1', report };
  const beat = (): Promise<unknown> => catalog.heartbeat(old, nodeLiveMs);
  await beat();
  const beats = setInterval(() => void beat(), nodeLiveMs / 5);
  await expect.poll(makeNext, { timeout: hangMs }).toBe('1');
  const index = await makeIndex(client);
  const change = (body: object) => client.send('PATCH', `/v1/indexes/${index.id}`, { body });
  for (const refused of [
    await client.createIndex({ name: 'codes', match_fields: ['code'] }),
    await change({ match_fields: ['code'] }),
  ]) {
    expect(expectError(refused, 503, 'service_unavailable').message).toContain(
      '1 of 2 nodes run an earlier release',
    );
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  for (const body of [{ match_fields: null }, { match_fields: [] }, { name: 'animals' }])
    expect((await change(body)).status).toBe(200);
  await put(client, index.id, [{ doc_id: 'bee', text: 'Honey bees dance.' }]);
  expect((await find(client, index.id, { query: 'insects' })).results).toMatchObject([{ doc_id: 'bee' }]);
  clearInterval(beats);
  await catalog.leave(old.id);
  expect((await change({ match_fields: ['code'] })).body).toMatchObject({ match_fields: ['code'] });
  await expect.poll(makeNext, { timeout: hangMs }).toBe('2');
  expect((await find(client, index.id, { query: 'insects' })).results).toMatchObject([{ doc_id: 'bee' }]);
});

it('no request fails while a node of the next version migrates and serves beside one of this', async () => {
  const { url, old, nodes, load, loading, more } = await startLoad();
  await more();
  const answered = { ...load.answered };
  const next = await startNext('expanding');
  for (const kind of ['upsert', 'remove', 'search'] as const)
    expect(load.answered[kind], kind).toBeGreaterThan(answered[kind]);
  nodes.push(next);
  await more();
  await load.lookEverywhere();
  expect([load.refused, load.lost]).toEqual([0, 0]);
  await old.stop();
  expect(load.refused + load.lost).toBeLessThanOrEqual(clients);
  await more();
  load.stop();
  await loading;
  await load.lookAt(next);
  expect(await queryDatabase(url, 'SELECT version, works_with FROM schema_version')).toEqual([
    { version: catalogMigrations.length + 1, works_with: catalogMigrations.length },
  ]);
  const uncounted = 'SELECT FROM versions WHERE characters IS DISTINCT FROM length(metadata)';
  expect(await queryDatabase(url, uncounted)).toEqual([]);
});

it('a migration that takes away what it says it keeps is found', async () => {
  await cluster.nodes[0]!.start();
  const { loading, more } = await startLoad();
  await more();
  await startNext('lying');
  await expect(loading).rejects.toThrow('internal_error');
});
