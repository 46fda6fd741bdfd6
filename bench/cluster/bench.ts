/**
 * `npm run bench -- cluster`: the cost of the catalog of several nodes beside the embedded one: PostgreSQL over loopback, with
 * everything synced, and SQLite in this process. First commits alone, without segments. Then upserts of nodes, which write and
 * upload segments too.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { Client } from 'pg';
import { startSharedServices, type SharedServices } from '../../deploy/local/cluster.ts';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
import type { Catalog } from '../../src/catalog/contract.ts';
import { openPostgresCatalog } from '../../src/catalog/postgres/open-catalog.ts';
import { openCatalog } from '../../src/catalog/sqlite/open-catalog.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { describeEnvironment } from '../lib/environment.ts';
import { integer, integers } from '../lib/options.ts';
import { scratchFolder } from '../lib/endings.ts';
import { median, quantile } from '../lib/statistics.ts';
import { commit, newTarget, rounded, type Target } from './target.ts';
import { measureLargeIndex } from './large-index.ts';
import { openUpsertNode, type UpsertNode } from './upserts.ts';

const settings = {
  rounds: integer(200, 'calls of each kind, one after the other'),
  seconds: integer(3, 'of commits for each number of clients'),
  clients: integers('1,4,16', 'clients that commit at the same time'),
  indexes: integers('1,16', 'indexes that they commit to'),
  documents: integers('20000,200000', 'documents of an index that is opened'),
};

export const cluster = benchmark({
  name: 'cluster',
  summary: 'commits and reads of the catalog that nodes share, beside the embedded one; upserts of nodes',
  settings,
  run,
  render: (report) => `${JSON.stringify({ ...report, environment: undefined }, null, 2)}\n`,
});

const warmUp = 20;

async function run(options: OptionsOf<typeof settings>): Promise<object> {
  const folder = scratchFolder('cluster');
  try {
    const services = await startSharedServices(folder.path);
    // The client of the object store reads its keys there.
    Object.assign(process.env, services.environment);
    try {
      const url = services.postgres.url;
      const shared = await openPostgresCatalog({ url, keyPepper: new Uint8Array(32) });
      const sqlite = path.join(folder.path, 'sqlite');
      await mkdir(sqlite);
      const embedded = await openCatalog({ directory: sqlite });
      try {
        return {
          environment: describeEnvironment(options.command, 'none', []),
          postgres: await latencies(shared, options),
          sqlite: await latencies(embedded, options),
          postgres_bytes_a_document: await bytesOfDocument(url, shared),
          commits_per_second: await rates({ postgres: shared, sqlite: embedded }, options),
          large_indexes: await largeIndexes(shared, options),
          upserts_of_nodes: await upsertRates(services, shared, options),
        };
      } finally {
        await shared.close();
        await embedded.close();
      }
    } finally {
      await services.stop();
    }
  } finally {
    folder[Symbol.dispose]();
  }
}

async function largeIndexes(
  catalog: ClusterCatalog,
  { documents, onProgress }: OptionsOf<typeof settings>,
): Promise<readonly object[]> {
  const rows: object[] = [];
  for (const count of documents) {
    rows.push(await measureLargeIndex(catalog, count));
    onProgress(JSON.stringify(rows.at(-1)));
  }
  return rows;
}

/** Upserts of one document a second into one index, by clients at one node or spread over as many as there are clients. */
async function upsertRates(
  services: SharedServices,
  catalog: Catalog,
  { seconds, clients, onProgress }: OptionsOf<typeof settings>,
): Promise<readonly object[]> {
  const rows: object[] = [];
  for (const clientCount of clients) {
    for (const nodeCount of new Set([1, clientCount])) {
      const target = await newTarget(catalog);
      const nodes: UpsertNode[] = [];
      while (nodes.length < nodeCount) {
        nodes.push(await openUpsertNode(services, target, path.join(services.directory, 'caches')));
      }
      const times: number[] = [];
      const perSecond = await perSecondOf(seconds, clientCount, async (turn) => {
        const start = performance.now();
        await nodes[turn % nodeCount]!.upsert();
        times.push(performance.now() - start);
      });
      const commits = nodes.reduce((sum, node) => sum + node.commits(), 0);
      for (const node of nodes) await node.close();
      rows.push({
        clients: clientCount,
        nodes: nodeCount,
        upserts_per_second: perSecond,
        upserts_per_commit: rounded(times.length / commits),
        p50_ms: rounded(median(times)),
        p99_ms: rounded(quantile(times, 0.99)),
      });
      onProgress(JSON.stringify(rows.at(-1)));
    }
  }
  return rows;
}

/** Medians and 99th percentiles in milliseconds, calls one after the other. */
async function latencies(
  catalog: Catalog,
  { rounds, onProgress }: OptionsOf<typeof settings>,
): Promise<object> {
  const target = await newTarget(catalog);
  const time = async (name: string, work: () => Promise<unknown>): Promise<object> => {
    const times: number[] = [];
    for (let round = -warmUp; round < rounds; round += 1) {
      const start = performance.now();
      await work();
      if (round >= 0) times.push(performance.now() - start);
    }
    onProgress(name);
    return { p50_ms: rounded(median(times)), p99_ms: rounded(quantile(times, 0.99)) };
  };
  return {
    commit_1: await time('commits of one document', () => commit(catalog, target, 1)),
    commit_100: await time('commits of 100 documents', () => commit(catalog, target, 100)),
  };
}

const documentsStored = 50_000;

/** Bytes in the tables and indexes of document versions. Each document has one version. */
async function bytesOfDocument(url: string, catalog: Catalog): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const bytes = async (): Promise<number> => {
    const { rows } = await client.query<{ bytes: string }>(
      "SELECT pg_total_relation_size('versions') + pg_total_relation_size('placements') AS bytes",
    );
    return Number(rows[0]?.bytes);
  };
  try {
    const target = await newTarget(catalog);
    const before = await bytes();
    for (let stored = 0; stored < documentsStored; stored += 1_000) await commit(catalog, target, 1_000);
    return Math.round(((await bytes()) - before) / documentsStored);
  } finally {
    await client.end();
  }
}

/** The catalogs take turns. */
async function rates(
  catalogs: Readonly<Record<string, Catalog>>,
  { seconds, clients, indexes, onProgress }: OptionsOf<typeof settings>,
): Promise<readonly object[]> {
  const rows: object[] = [];
  for (const indexCount of indexes) {
    for (const clientCount of clients) {
      const row: Record<string, number> = { indexes: indexCount, clients: clientCount };
      for (const [name, catalog] of Object.entries(catalogs)) {
        row[name] = await rate(catalog, { seconds, clientCount, indexCount });
      }
      rows.push(row);
      onProgress(JSON.stringify(row));
    }
  }
  return rows;
}

async function rate(
  catalog: Catalog,
  shape: { readonly seconds: number; readonly clientCount: number; readonly indexCount: number },
): Promise<number> {
  // Each index has a tenant of its own, because usage of one tenant is one row.
  const targets: Target[] = [];
  while (targets.length < shape.indexCount) targets.push(await newTarget(catalog));
  return await perSecondOf(shape.seconds, shape.clientCount, (turn) =>
    commit(catalog, targets[turn % targets.length]!, 1),
  );
}

/** Answers a second of clients, each of which waits for its answer. */
async function perSecondOf(
  seconds: number,
  clients: number,
  work: (turn: number) => Promise<void>,
): Promise<number> {
  let done = 0;
  const start = performance.now();
  const endsAt = start + seconds * 1_000;
  await Promise.all(
    Array.from({ length: clients }, async (_client, client) => {
      for (let turn = client; performance.now() < endsAt; turn += clients) {
        await work(turn);
        done += 1;
      }
    }),
  );
  return rounded(done / ((performance.now() - start) / 1_000));
}
