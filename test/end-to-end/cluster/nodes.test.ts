/** Three nodes as a user meets them: over HTTP, with the real model, through the deaths of nodes and servers. */
import { randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { startCluster, type LocalCluster } from '../../../deploy/local/cluster.ts';
import { describeCluster } from '../../../deploy/local/describe-cluster.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { openS3ObjectStore } from '../../../src/index/storage/s3-object-store.ts';
import { Activity } from '../../../src/http/schemas/activity.ts';
import { rounds } from '../../rounds.ts';
import { missingBrowser, startBrowser } from '../../support/browser.ts';
import { HttpNode } from '../../support/cluster/history/http-node.ts';
import { killAndStart, killForGood } from '../../support/cluster/history/kill-node.ts';
import { Load } from '../../support/cluster/history/load.ts';
import { newKeyedTenant } from '../../support/cluster/history/tenants.ts';
import { serversMs } from '../../support/cluster/servers.ts';
import { assertStoredWhole } from '../../support/cluster/stored-objects.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { connect, expectReply, type Client } from '../../support/running/client.ts';
import { runJson } from '../../support/commands/command-process.ts';
import { entryPoint } from '../../support/running/launch.ts';
import { readMetric } from '../../support/running/server.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { documentPage, usageSummary } from '../../support/running/wire.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';

const kills = rounds({ short: 2, nightly: 50 });
const untilKillMsMax = 2_000;
const cacheMib = 512;

let cluster: LocalCluster;
let key: string;
beforeAll(async () => {
  cluster = await startCluster({
    directory: await newDirectory(),
    nodes: 3,
    balance: 'turns',
    environment: { MAXSIMD_CACHE_MIB: String(cacheMib) },
  });
  key = await newKey(100_000, 1_000_000);
}, serversMs);
afterAll(() => cluster.stop());

async function newKey(requestsPerMinute: number, inputTokens: number): Promise<string> {
  const args = [entryPoint, 'tenant', 'create', '--name', randomUUID(), '--max-concurrent-requests', '200'];
  const limits = [`--requests-per-minute=${requestsPerMinute}`, `--input-tokens=${inputTokens}`];
  const { stdout } = await promisify(execFile)(process.execPath, [...args, ...limits, '--json'], {
    env: { ...process.env, ...cluster.environment },
  });
  return z.object({ api_key: z.string() }).parse(JSON.parse(stdout)).api_key;
}

const statedNode = z.object({
  live: z.boolean(),
  report: z.object({
    cache: z.object({ bytes: z.number(), bytes_max: z.literal(cacheMib * 2 ** 20) }),
    indexes: z.object({ open: z.number(), behind_max: z.number() }),
  }),
});
const clients = (): readonly Client[] => cluster.nodes.map(({ url }) => connect(url, key));
const document = (id: number) => ({
  doc_id: `d${id}`,
  text: `a short text about number ${id} and little else`,
  metadata: { code: `N${id}.65` },
});
const foundBy = async (client: Client, indexId: string): Promise<readonly string[]> =>
  (await find(client, indexId, { query: 'a number', top_k: 100 })).results
    .map(({ doc_id: docId }) => docId)
    .toSorted();
/** The best document for a code that stands in metadata alone. */
const bestFor = async (client: Client, indexId: string, code: string): Promise<string | undefined> =>
  (await find(client, indexId, { query: `which text is ${code}?`, top_k: 1 })).results[0]?.doc_id;

it('lose nothing that was answered when a node dies, its disk goes, and the database restarts', async () => {
  const [one, two, three] = clients();
  const { id } = await makeIndex(one!, { match_fields: ['code'] });
  const stored: string[] = [];
  const add = async (client: Client, count: number): Promise<void> => {
    const documents = Array.from({ length: count }, (_value, place) => document(stored.length + place));
    await put(client, id, documents);
    stored.push(...documents.map(({ doc_id: docId }) => docId));
    stored.sort();
  };
  await add(one!, 3);
  await add(two!, 2);
  for (const client of [one!, two!, three!]) {
    expect(await foundBy(client, id)).toEqual(stored);
    expect(await bestFor(client, id, 'n3-65')).toBe('d3');
  }

  const [node] = cluster.nodes;
  node!.kill('SIGKILL');
  await add(three!, 2);
  expect(await foundBy(two!, id)).toEqual(stored);
  await node!.stop();
  await rm(path.join(node!.directory, 'data'), { recursive: true });
  await node!.start();
  expect(await foundBy(one!, id)).toEqual(stored);
  expect(await bestFor(one!, id, 'N 6 65')).toBe('d6');

  await cluster.postgres.stop('SIGQUIT');
  expect((await two!.search(id, { query: 'a number' })).status).toBe(503);
  expect((await two!.upsert(id, [document(99)])).status).toBe(503);
  await cluster.postgres.start();
  // Each node looks for itself which history the database has now.
  for (const client of [one!, two!, three!]) {
    const answer = async (): Promise<number> => (await client.search(id, { query: 'a number' })).status;
    await expect.poll(answer).toBe(200);
  }
  await add(two!, 1);
  for (const client of [one!, two!, three!]) expect(await foundBy(client, id)).toEqual(stored);
});

it('answer 503 to upserts and go on searching while the object store is away', async () => {
  const [one, two] = clients();
  const { id } = await makeIndex(one!);
  await put(one!, id, [document(1)]);
  expect(await foundBy(one!, id)).toEqual(['d1']);
  await cluster.seaweed.stop('SIGKILL');
  expect(await foundBy(one!, id)).toEqual(['d1']);
  const refused = await one!.upsert(id, [document(2)]);
  expect(refused.status).toBe(503);
  await cluster.seaweed.start();
  expect(await foundBy(one!, id)).toEqual(['d1']);
  await expect.poll(async () => (await two!.upsert(id, [document(3)])).status).toBe(200);
  expect(await foundBy(one!, id)).toEqual(['d1', 'd3']);
});

it('count one rate and one allowance', async () => {
  const rated = await newKey(10, 1_000_000);
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_value, place) => connect(cluster.nodes[place % 3]!.url, rated).usage()),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(20);

  const allowed = await newKey(1_000, 100);
  const nodes = cluster.nodes.map(({ url }) => connect(url, allowed));
  const { id } = await makeIndex(nodes[0]!);
  const searches = await Promise.all(
    Array.from({ length: 100 }, (_value, place) => nodes[place % 3]!.search(id, { query: 'one two three' })),
  );
  const used = expectReply(await nodes[0]!.usage(), usageSummary).usage;
  const answered = searches.filter(({ status }) => status === 200).length;
  expect(searches.filter(({ status }) => status === 429)).toHaveLength(100 - answered);
  // Three tokens each, and what the query begins and ends with counts or does not.
  expect(Number(used.input_tokens)).toBeLessThanOrEqual(100);
  expect(Number(used.input_tokens)).toBeGreaterThan(90);
  expect([used.searches, used.requests]).toEqual([answered, answered + 1]);
});

it('list what a condition matches, also while another node writes', async () => {
  const [one, two, three] = clients();
  const { id } = await makeIndex(one!);
  const numbered = Array.from({ length: 30 }, (_value, n) => ({
    ...document(n),
    metadata: { even: n % 2 === 0 },
  }));
  await put(one!, id, numbered);
  const even = numbered.filter(({ metadata }) => metadata.even);
  const expected = even.map(({ doc_id: docId }) => docId).toSorted();
  const listed: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const body = { where: { even: true }, limit: 4, ...(cursor !== undefined && { cursor }) };
    const page = expectReply(await two!.listMatching(id, body), documentPage);
    listed.push(...page.data.map(({ doc_id: docId }) => docId));
    // Each page comes after all these documents have new versions, from another node.
    await put(three!, id, even);
    cursor = page.next_cursor;
  }
  expect(listed).toEqual(expected);
});

it('find by a name whichever index has it when the request arrives, on every node', async () => {
  const nodes = clients();
  const [one] = nodes;
  const name = `live/${randomUUID()}`;
  const live = await makeIndex(one!, { name });
  const next = await makeIndex(one!, { name: `next/${randomUUID()}` });
  await put(one!, live.id, [{ ...document(1), doc_id: 'live' }]);
  await put(one!, next.id, [{ ...document(1), doc_id: 'next' }]);
  const address = encodeURIComponent(`name:${name}`);
  for (const [turn, expected] of ['next', 'live', 'next', 'live', 'next', 'live'].entries()) {
    for (const node of nodes) await foundBy(node, address);
    const swap = { body: { swap_name_with: `name:${next.name}` } };
    expect((await nodes[turn % 3]!.send('PATCH', `/v1/indexes/${address}`, swap)).status).toBe(200);
    for (const node of nodes) expect(await foundBy(node, address)).toEqual([expected]);
  }
  // Callers of all nodes that want an index of one name get one.
  const wanted = { name: randomUUID(), if_exists: 'return' };
  const made = await Promise.all(
    Array.from({ length: 9 }, (_value, place) => nodes[place % 3]!.createIndex(wanted)),
  );
  expect(made.filter(({ status }) => status === 200)).toHaveLength(8);
  expect(made.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(new Set(made.map(({ body }) => (body as { readonly id: string }).id)).size).toBe(1);
});

const noBrowser = missingBrowser();
it.skipIf(noBrowser !== undefined)(
  'name themselves in the console, each with the searches that it answered',
  async () => {
    const [one, two] = clients();
    const { id, name } = await makeIndex(one!);
    await put(one!, id, [document(1)]);
    await foundBy(one!, id);
    for (let time = 0; time < 2; time += 1) await foundBy(two!, id);
    const names: string[] = [];
    const browser = await startBrowser();
    onTestFinished(() => browser.close());
    for (const [client, searches] of [
      [one!, '1 search,'],
      [two!, '2 searches,'],
    ] as const) {
      const { node, data } = Activity.parse((await client.send('GET', '/v1/activity')).body);
      expect(data.find(({ index_id: indexId }) => indexId === id)?.hour.searches).toBe(Number(searches[0]));
      const page = await browser.newPage();
      await page.goto(`${client.url}/console`);
      await page.getByLabel('API key').fill(key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText(`The searches are those that node ${node} answered.`).waitFor();
      await page.getByRole('listitem').filter({ hasText: name }).getByText(searches).waitFor();
      names.push(node ?? '');
    }
    const environment = { ...cluster.environment, MAXSIMD_DATA_DIR: await newDirectory() };
    const status = await runJson(['cluster', 'status'], { environment });
    const known = z.object({ nodes: z.array(z.object({ name: z.string() })) }).parse(status.document).nodes;
    expect(known.map((node) => node.name)).toEqual(expect.arrayContaining(names));
    expect(new Set(names).size).toBe(2);
  },
);

it('say how they are, and have lost nothing that the catalog names', async () => {
  const environment = { ...cluster.environment, MAXSIMD_DATA_DIR: await newDirectory() };
  const verified = await runJson(['index', 'verify'], { environment });
  expect(verified.document).toMatchObject({ problems: [] });
  expect(verified.document.records).toBeGreaterThan(8);
  expect(verified.exitCode).toBe(0);
  // With its next heartbeat a node says what it has open.
  await expect
    .poll(async () => (await runJson(['cluster', 'status'], { environment })).document)
    .toMatchObject({
      documents: verified.document.records,
      nodes: expect.toSatisfy((nodes: readonly z.infer<typeof statedNode>[]) => {
        const live = nodes.filter((node) => node.live).map((node) => statedNode.parse(node));
        return live.length === cluster.nodes.length && live.some(({ report }) => report.indexes.open > 0);
      }),
    });
});

it('are described by lines to paste, with which every command works beside them', async () => {
  const lines = describeCluster(cluster, key).match(/^ {2}export .+$/gm) ?? [];
  const pasted = async (...words: readonly string[]): Promise<unknown> => {
    const script = `${lines.join('\n')}\nexec "$0" "$@" --json`;
    const args = ['-c', script, process.execPath, entryPoint, ...words];
    const { stdout } = await promisify(execFile)('sh', args, { env: { PATH: process.env['PATH'] } });
    return JSON.parse(stdout);
  };
  const listed = z.looseObject({ data: z.array(z.looseObject({ tenant_id: z.string() })) });
  const [tenant] = listed.parse(await pasted('tenant', 'list')).data;
  expect(await pasted('tenant', 'limits', tenant!.tenant_id, '--requests-per-minute', '99999')).toMatchObject(
    {
      limits: { requests_per_minute: 99_999 },
    },
  );
  expect(await pasted('cluster', 'status')).toHaveProperty('nodes');
  expect(await pasted('usage')).toHaveProperty('usage.requests');
});

it('tell how they keep up, and why they are not ready', async () => {
  const [one, two] = clients();
  const [, node] = cluster.nodes;
  const figure = (series: string): Promise<number> => readMetric(node!, `maxsimd_cluster_${series}`);
  const { id } = await makeIndex(one!);
  await put(one!, id, [document(1)]);
  await foundBy(two!, id);
  const series = [
    'call_seconds_count{service="catalog",operation="read-heads"}',
    'call_seconds_count{service="objects",operation="get"}',
    'call_seconds_count{service="limiter",operation="admit"}',
    'commits_behind_count',
    'commits_behind_sum',
    'catch_up_seconds_count{kind="follows"}',
    'object_bytes_total{direction="get"}',
    'cache_lookups_total{outcome="miss"}',
  ];
  const before = await Promise.all(series.map(figure));
  await put(one!, id, [document(2)]);
  await foundBy(two!, id);
  for (const [place, name] of series.entries())
    expect(await figure(name), name).toBeGreaterThan(before[place]!);
  // A node that was killed a moment ago counts still.
  expect(await figure('nodes')).toBeGreaterThanOrEqual(3);
  expect(await figure('limiter_fallback')).toBe(0);
  expect(await figure('cache_bytes{kind="held"}')).toBeLessThan(await figure('cache_bytes{kind="bound"}'));

  const readiness = async () => {
    const answer = await fetch(`${node!.url}/readyz`);
    return { status: answer.status, body: await answer.text() };
  };
  await expect
    .poll(readiness)
    .toMatchObject({ status: 200, body: expect.stringContaining('"limiter":"ok"') });
  await cluster.seaweed.stop('SIGKILL');
  await expect
    .poll(readiness)
    .toMatchObject({ status: 503, body: expect.stringMatching(/"objects","message":"refuses connections"/) });
  await cluster.seaweed.start();
  await cluster.postgres.stop('SIGQUIT');
  await expect
    .poll(readiness)
    .toMatchObject({ status: 503, body: expect.stringMatching(/"catalog","message":"refuses connections"/) });
  expect(await figure('call_failures_total{service="catalog",operation="ping"}')).toBeGreaterThan(0);
  await cluster.postgres.start();
  await expect.poll(async () => (await readiness()).status).toBe(200);
});

it(
  'lose nothing that was answered when they are killed under load, and two of them for good',
  { timeout: 3_600_000 },
  async () => {
    const seed = Date.now() % 1_000_000;
    const random = seededRandom(seed);
    const { MAXSIMD_CATALOG_URL: url = '', MAXSIMD_BLOBS_URL: blobsUrl = '' } = cluster.environment;
    const keyPepper = await readFile(cluster.environment['MAXSIMD_KEY_PEPPER_FILE'] ?? '');
    const catalog = await openPostgresCatalog({ url, keyPepper });
    onTestFinished(() => catalog.close());
    Object.assign(process.env, cluster.seaweed.environment);
    const objects = openS3ObjectStore(blobsUrl);
    onTestFinished(() => objects.close());

    const tenant = await newKeyedTenant(catalog, keyPepper, { inputTokens: 1_000_000_000_000n });
    const { id: indexId } = await makeIndex(connect(cluster.nodes[0]!.url, tenant.apiKey));
    const nodes = cluster.nodes.map((node) => new HttpNode(node));
    const load = new Load({ nodes, writer: { ...tenant, indexId }, random });
    const loading = load.run();
    loading.catch(() => undefined);
    for (let kill = 0; kill < kills; kill += 1) {
      await pause(untilKillMsMax * random());
      await killAndStart(url, nodes[Math.floor(random() * nodes.length)]!, random() < 0.5);
    }
    load.stop();
    await loading;
    await load.lookEverywhere();
    const [lost, alsoLost, last] = nodes;
    for (const node of [lost!, alsoLost!]) await killForGood(url, node, true);
    await load.lookAt(last!);
    await killForGood(url, last!, false);
    const stored = await assertStoredWhole({ url, catalog, objects, blobsUrl });
    console.log(
      `seed ${seed}: ${kills} kills, ${load.history.operations} writes, ${load.operations} answers, ${load.lost} lost, ${load.refused} refused, ${stored} objects whole`,
    );
    expect(load.answered.upsert).toBeGreaterThan(kills);
  },
);
