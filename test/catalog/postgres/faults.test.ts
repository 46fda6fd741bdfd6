import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ClusterCatalog } from '../../../src/catalog/cluster-contract.ts';
import { openPostgresCatalog } from '../../../src/catalog/postgres/open-catalog.ts';
import { commitDelta, deltaUpsert, newDelta, upsertDelta } from '../../support/cluster/delta-writer.ts';
import { lockRows, newSharedDatabase, queryDatabase } from '../../support/cluster/servers.ts';
import { startCuttingProxy } from '../../support/network/cutting-proxy.ts';
import { eventually } from '../../support/running/eventually.ts';
import { month, newIndex, newTenant, usageOf } from '../../support/stages/catalog-fixture.ts';

const keyPepper = randomBytes(32);
const unavailable = { code: 'service_unavailable' };
const lockIndexes = 'SELECT 1 FROM indexes FOR UPDATE';

async function open(url: string): Promise<ClusterCatalog> {
  const catalog = await openPostgresCatalog({ url, keyPepper });
  onTestFinished(() => catalog.close());
  return catalog;
}

/** A catalog behind a proxy, and one with a direct connection. */
async function openBehindProxy() {
  const url = await newSharedDatabase();
  const { host } = new URL(url);
  const proxy = await startCuttingProxy(host);
  onTestFinished(() => proxy.close());
  const direct = await open(url);
  const catalog = await open(url.replace(host, proxy.address));
  const index = await newIndex(direct, (await newTenant(direct)).id);
  return { url, proxy, direct, catalog, index };
}

async function waitingCommits(url: string): Promise<number> {
  const text = `SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%commit_upsert%'`;
  return (await queryDatabase(url, text)).length;
}

/** The error that the promise rejects with; `undefined` when it resolves. */
function reasonOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

async function untilWaiting(url: string, commits: number): Promise<void> {
  await eventually(async () => (await waitingCommits(url)) === commits);
}

describe('a commit whose connection is lost', () => {
  it('is answered with its result when it had happened', async () => {
    const { proxy, direct, catalog, index } = await openBehindProxy();
    await upsertDelta(direct, index, ['a', 'b']);
    for (const bytes of [0, 1, 5, 40]) {
      const delta = await newDelta(catalog, index.id, ['a', `new ${bytes}`]);
      const { generation } = (await direct.readHead(index.id))!;
      const cuts = proxy.cuts();
      proxy.cutOnceAfter(bytes);
      const result = await commitDelta(catalog, index, delta);
      expect(proxy.cuts()).toBe(cuts + 1);
      expect(result).toMatchObject({
        outcome: 'committed',
        generation: generation + 1,
        died: [{ docId: 'a' }],
      });
      expect(await direct.readHead(index.id)).toMatchObject({ generation: generation + 1 });
    }
    expect((await direct.usageTotals(index.tenantId, month)).documents).toBe(2 + 4);
    const usage = usageOf(index.tenantId);
    proxy.cutOnceAfter(0);
    expect(
      await catalog.commitDelete({ tenantId: index.tenantId, indexId: index.id, docId: 'b', usage }),
    ).toMatchObject({ outcome: 'committed', died: { docId: 'b' } });
    const { versions } = await direct.loadIndexState(index.id);
    const versionIds = [...versions.versionIds].filter((_id, place) => versions.died[place] === 0);
    proxy.cutOnceAfter(5);
    const deleted = await catalog.commitDeleteVersions({
      tenantId: index.tenantId,
      indexId: index.id,
      versionIds,
      usage,
    });
    expect(deleted).toMatchObject({ outcome: 'committed' });
    expect(deleted.outcome === 'committed' && deleted.died).toHaveLength(versionIds.length);
    expect((await direct.usageTotals(index.tenantId, month)).documents).toBe(0);
  });

  it('is answered for each of the upserts that share it', async () => {
    const { proxy, direct, catalog, index } = await openBehindProxy();
    for (const [round, bytes] of [0, 40].entries()) {
      const { segment, documents } = await newDelta(catalog, index.id, ['a', 'b', `new ${round}`]);
      const upsertOf = (place: number, documentsMax = 1_000_000) =>
        deltaUpsert(index, { segment, documents: [documents[place]!] }, { documentsMax });
      const { generation } = (await direct.readHead(index.id))!;
      proxy.cutOnceAfter(bytes);
      const results = await catalog.commitUpserts([upsertOf(0), upsertOf(2, 0), upsertOf(1)]);
      expect(results).toMatchObject([
        { value: { outcome: 'committed', generation: generation + 1 } },
        // The connection is lost, so the reason of the refusal is unknown.
        { status: 'rejected', reason: unavailable },
        { value: { outcome: 'committed', generation: generation + 2 } },
      ]);
      expect(await direct.readHead(index.id)).toMatchObject({ generation: generation + 2 });
    }
  });

  it('never happens after it was answered as lost', async () => {
    const { url, proxy, direct, catalog, index } = await openBehindProxy();
    const delta = await newDelta(catalog, index.id, ['a']);
    const lock = await lockRows(url, lockIndexes);
    const refused = reasonOf(commitDelta(catalog, index, delta));
    await untilWaiting(url, 1);
    // The server does not notice that and goes on waiting.
    proxy.cutOnceAfter(0);
    await expect(catalog.ping()).rejects.toMatchObject(unavailable);
    expect(await refused).toMatchObject(unavailable);
    expect(await waitingCommits(url)).toBe(1);
    await lock.release();
    await untilWaiting(url, 0);
    // The lock is free again for the next commit.
    expect(await upsertDelta(direct, index, ['b'])).toBe(1);
    expect((await direct.usageTotals(index.tenantId, month)).documents).toBe(1);
  });

  it('has not happened when the server ended it', async () => {
    const { url, direct, catalog, index } = await openBehindProxy();
    const delta = await newDelta(catalog, index.id, ['a']);
    const lock = await lockRows(url, lockIndexes);
    const refused = reasonOf(commitDelta(catalog, index, delta));
    await untilWaiting(url, 1);
    await queryDatabase(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    expect(await refused).toMatchObject(unavailable);
    await lock.release();
    expect(await direct.readHead(index.id)).toMatchObject({ generation: 0 });
  });
});

describe('a database that is away', () => {
  it('is unavailable until it is back', async () => {
    const { proxy, catalog, index } = await openBehindProxy();
    proxy.cutAlwaysAfter(0);
    const away = { ...unavailable, retryAfterSeconds: 1 };
    await expect(catalog.ping()).rejects.toMatchObject(away);
    await expect(catalog.readHead(index.id)).rejects.toMatchObject(away);
    await expect(catalog.recordUsage(usageOf(index.tenantId))).rejects.toMatchObject(away);
    await expect(catalog.getTenant(index.tenantId)).rejects.toMatchObject(away);
    await expect(catalog.deleteIndex(index.tenantId, index.id)).rejects.toMatchObject(away);
    proxy.stopCutting();
    await catalog.ping();
    expect(await catalog.readHead(index.id)).toMatchObject({ generation: 0, layout: 0 });
  });

  it('refuses callers without a connection, and every answer about a commit is true', async () => {
    const { url, direct, catalog, index } = await openBehindProxy();
    const deltas = await Promise.all(
      Array.from({ length: 20 }, (_delta, place) => newDelta(direct, index.id, [`${place}`])),
    );
    const lock = await lockRows(url, lockIndexes);
    const commits = Promise.allSettled(deltas.map((delta) => commitDelta(catalog, index, delta)));
    await untilWaiting(url, 10);
    await expect(catalog.ping()).rejects.toMatchObject(unavailable);
    await lock.release();
    const settled = await commits;
    const refused = settled.flatMap((commit) =>
      commit.status === 'rejected' ? [commit.reason as unknown] : [],
    );
    for (const reason of refused) expect(reason).toMatchObject(unavailable);
    expect(settled.length - refused.length).toBeGreaterThanOrEqual(10);
    expect(await direct.readHead(index.id)).toMatchObject({ generation: settled.length - refused.length });
    await catalog.ping();
  });
});

describe('a schema', () => {
  it('is made once by nodes that start at the same moment', async () => {
    const url = await newSharedDatabase();
    const catalogs = await Promise.all(Array.from({ length: 8 }, () => open(url)));
    const { id } = await newTenant(catalogs[0]!);
    for (const catalog of catalogs) expect(await catalog.getTenant(id)).toBeDefined();
  });

  it('of a newer program is refused unless that says that this one works with it', async () => {
    const url = await newSharedDatabase();
    await open(url);
    await queryDatabase(url, 'UPDATE schema_version SET version = version + 1');
    await (await open(url)).ping();
    await queryDatabase(url, 'UPDATE schema_version SET works_with = version');
    await expect(open(url)).rejects.toThrow(/newer maxsimd/);
  });

  it('is not begun on a PostgreSQL that is too old', async () => {
    const url = await newSharedDatabase();
    // The server says that it is another version.
    await queryDatabase(
      url,
      `CREATE SCHEMA older;
      CREATE FUNCTION older.current_setting(text) RETURNS text LANGUAGE sql
        AS $$ SELECT CASE $1 WHEN 'server_version_num' THEN '120022' ELSE '12.22' END $$`,
    );
    const older = `${url}?options=${encodeURIComponent('-c search_path=older,pg_catalog,public')}`;
    await expect(open(older)).rejects.toThrow(
      'the catalog needs PostgreSQL 13 or later, and this server is 12.22',
    );
    expect(await queryDatabase(url, `SELECT to_regclass('schema_version') AS tables`)).toEqual([
      { tables: null },
    ]);
  });

  it('with the keys of another pepper is refused', async () => {
    const url = await newSharedDatabase();
    await open(url);
    const other = openPostgresCatalog({ url, keyPepper: randomBytes(32) });
    await expect(other).rejects.toThrow(/another pepper/);
  });
});
