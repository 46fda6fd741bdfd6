/**
 * Eight clients write, delete and search at three nodes while everything that nodes share, and the nodes themselves,
 * fail. Every search is compared with the history; afterwards so are the ledger, the limits and the objects.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Servers } from '../../support/cluster/history/battery.ts';
import {
  withoutDurability,
  withoutEpochs,
  withoutFence,
} from '../../support/cluster/history/planted-database.ts';
import { losesCommits } from '../../support/cluster/history/faults.ts';
import { operationsMin, runHistory } from '../../support/cluster/history/run-history.ts';
import {
  serversMs,
  startTestPostgres,
  startTestRedis,
  startTestSeaweed,
} from '../../support/cluster/servers.ts';

let servers: Servers;
beforeAll(async () => {
  const [postgres, weed, redis] = await Promise.all([
    startTestPostgres(),
    startTestSeaweed(),
    startTestRedis(),
  ]);
  servers = { postgres, weed, redis };
}, serversMs);
afterAll(async () => {
  const { postgres, weed, redis } = servers;
  await Promise.all([postgres.stop(), weed.stop(), redis.stop()]);
});

const isNightly = process.env['TEST_NIGHTLY'] === '1';
const bounds = isNightly ? { operations: 200_000 } : { operations: 1_000, msMax: 7_000, pauseMs: 200 };
const historyMsMax = isNightly ? 12 * 3_600_000 : 300_000;
const counterFile = path.join(import.meta.dirname, '../../../build/cluster-history.json');

interface Counter {
  /** The seed of the next run. */
  readonly run: number;
  /** Made so far. */
  readonly operations: number;
}

/** Counts go on from run to run of the battery. */
function readCounter(): Counter {
  if (!existsSync(counterFile)) return { run: 1, operations: 0 };
  return JSON.parse(readFileSync(counterFile, 'utf8')) as Counter;
}

it('holds through every fault of the services and of the nodes', { timeout: historyMsMax }, async () => {
  const { run: seed, operations: before } = readCounter();
  console.log(`history: seed ${seed}`);
  const report = await runHistory(servers, { seed, ...bounds });
  writeFileSync(
    counterFile,
    JSON.stringify({ run: seed + 1, operations: before + report.operations } satisfies Counter),
  );
  console.log(`history: ${JSON.stringify(report)}, operations so far: ${before + report.operations}`);
  expect(report.operations).toBeGreaterThanOrEqual(isNightly ? bounds.operations : operationsMin);
  expect(report.searches).toBeGreaterThan(report.operations / 3);
  expect(Object.keys(report.faults).length).toBeGreaterThan(0);
});

const losing = { seed: 1, faults: losesCommits, pauseMs: 200 };
const losingBounds = isNightly ? { operations: 50_000 } : { operations: 20_000, msMax: 15_000 };

it('answers as of one history when PostgreSQL loses its last commits', { timeout: 3_600_000 }, async () => {
  const report = await runHistory(servers, { ...losing, ...losingBounds });
  console.log(`history: ${JSON.stringify(report)}`);
  expect(Object.keys(report.faults).length).toBeGreaterThan(0);
  expect(report.searches).toBeGreaterThan(20);
});

it.runIf(isNightly)('finds nodes that take another history for the same', async () => {
  const run = runHistory(servers, {
    ...losing,
    operations: 50_000,
    planted: ({ url }) => withoutEpochs(url),
  });
  await expect(run).rejects.toThrow(
    /a search saw version|found a document twice|a bug|a node does not answer/,
  );
});

it('finds nodes that do not look at the head', async () => {
  const run = runHistory(servers, { seed: 1, operations: 5_000, faults: [], planted: 'heads' });
  await expect(run).rejects.toThrow(/a search saw version/);
});

it.runIf(isNightly)('finds a merger that ignores its fence', async () => {
  const run = runHistory(servers, {
    seed: 1,
    operations: 50_000,
    faults: ['merger asleep past its lease'],
    pauseMs: 0,
    planted: ({ url }) => withoutFence(url),
  });
  await expect(run).rejects.toThrow(/a search saw version|found a document twice|a bug/);
});

it.runIf(isNightly)('finds commits that are answered before they are durable', async () => {
  const run = runHistory(servers, {
    seed: 1,
    operations: 50_000,
    faults: ['PostgreSQL restarted at once'],
    planted: ({ url }) => withoutDurability(url),
  });
  await expect(run).rejects.toThrow(/a search saw version/);
});
