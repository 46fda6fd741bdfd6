/** The capacity benchmark and the services that benchmarks work on: nothing of them is left behind, however a benchmark ends. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/running/eventually.ts';
import { childrenOf, encodersOf, isAlive } from '../support/running/processes.ts';
import { makeCertificate } from '../support/network/tls.ts';
import { benchmarkEnvironment, root, tinyModel } from '../support/run-benchmark.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';

interface CapacityReport {
  readonly interrupted: boolean;
  readonly rows: readonly {
    readonly failed: number;
    readonly rate_per_second: number;
    readonly by_operation: object;
    readonly latency_ms: { readonly p50: number };
    readonly resources: Readonly<Record<'encoderCores' | 'encoderLoopCores' | 'engineCores', number>> & {
      readonly indexes: {
        readonly diskBytesPerTokenVector: number;
        readonly memoryBytesPerTokenVector: number;
        readonly plans: Readonly<Record<string, number>>;
      };
    };
  }[];
}

function reportIn(file: string): CapacityReport {
  return JSON.parse(readFileSync(file, 'utf8')) as CapacityReport;
}

/** Runs a benchmark to its end, does something to it at each line that it writes, and gives what became of it. */
async function watched(
  args: readonly string[],
  onLine: (line: string, child: ChildProcess) => Promise<void> | void,
  environment: Readonly<Record<string, string>> = {},
) {
  const scratch = await newDirectory();
  const child = spawn(process.execPath, ['bench/main.ts', ...args], {
    cwd: root,
    env: {
      ...benchmarkEnvironment,
      TMPDIR: scratch,
      ...tinyModel,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  child.stdout.on('data', (data: Buffer) => (printed += data.toString()));
  const exited = new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  let reported = '';
  for await (const line of createInterface({ input: child.stderr })) {
    reported += `${line}\n`;
    await onLine(line, child);
  }
  return { code: await exited, reported, printed, left: readdirSync(scratch) };
}

/** Does something once, at the first line that matches, and sees that the server and its encoder are gone in the end. */
async function disturbed(
  args: readonly string[],
  line: RegExp,
  disturb: (benchmark: { readonly pid: number; readonly server: number }) => void,
) {
  let processes: readonly number[] = [];
  const ended = await watched(args, async (text, { pid }) => {
    if (!line.test(text) || processes.length > 0) return;
    const server = (await childrenOf(pid!)).find(({ command }) => command.includes('serve'));
    processes = [server!.pid, ...(await encodersOf(server!.pid)).map((encoder) => encoder.pid)];
    disturb({ pid: pid!, server: server!.pid });
  });
  expect(processes, ended.reported).toHaveLength(2);
  for (const pid of processes) {
    await eventually(async () => ((await isAlive(pid)) ? undefined : true), {
      withinMs: 10_000,
      what: 'the end of the server and its encoder',
    });
  }
  return ended;
}

const capacity = ['capacity', '--documents', '5', '--rates', '40,41,42,43', '--step-seconds', '1'];
const stepLine = /^4\d\.0\/s: p50 /;

describe('a server that a benchmark started', () => {
  it.each<[NodeJS.Signals, number]>([
    ['SIGHUP', 129],
    ['SIGINT', 130],
  ])(
    'goes with a benchmark that %s ends, and so do its encoder and its files',
    async (signal, code) => {
      const stages = ['stages', '--documents', '4', '--queries', '4', '--warm-up', '4'];
      const ended = await disturbed(stages, /^measuring the floor/, ({ pid }) => process.kill(pid, signal));
      expect(ended.code, ended.reported).toBe(code);
      expect(ended.left).toEqual([]);
    },
    120_000,
  );

  it('goes with a capacity benchmark whose terminal has gone, which still reports', async () => {
    const json = path.join(await newDirectory(), 'report.json');
    const args = [...capacity, '--json', json];
    const ended = await disturbed(args, stepLine, ({ pid }) => process.kill(pid, 'SIGHUP'));
    expect(ended.code, ended.reported).toBe(130);
    expect(ended.left).toEqual([]);
    const report = reportIn(json);
    expect(report.interrupted).toBe(true);
    expect(report.rows).toHaveLength(1);
  }, 120_000);

  it('that is killed ends the benchmark, which says so and keeps the steps it has', async () => {
    const json = path.join(await newDirectory(), 'report.json');
    const args = [...capacity, '--json', json];
    const ended = await disturbed(args, stepLine, ({ server }) => process.kill(server, 'SIGKILL'));
    expect(ended.code, ended.reported).toBe(1);
    expect(ended.reported).toContain('the server ended by itself (SIGKILL)');
    expect(ended.left).toEqual([]);
    const report = reportIn(json);
    expect(report.rows.map((row) => row.failed)).toEqual([0]);
  }, 120_000);
});

it('measures a real service and reports also when it is interrupted', async () => {
  const directory = await newDirectory();
  const [json, html] = [path.join(directory, 'report.json'), path.join(directory, 'report.html')];
  const args = '--mix search=2,upsert=1,score=1 --rates 100,120,140,160 --step-seconds 1 --documents 20';
  const ended = await disturbed(
    ['capacity', ...args.split(' '), '--json', json, '--html', html],
    /^\d+\/s: p50 /,
    ({ pid }) => process.kill(pid, 'SIGINT'),
  );
  expect(ended.code, ended.reported).toBe(130);
  expect(ended.printed).toContain('(interrupted)');
  const report = reportIn(json);
  expect(report).toMatchObject({
    interrupted: true,
    environment: { command: expect.stringContaining('capacity') as string },
    verdict: { resource: expect.any(String) as string, reason: expect.any(String) as string },
    ratios: {},
  });
  expect(report.rows).toHaveLength(1);
  const [row] = report.rows;
  expect(row).toMatchObject({ rate_per_second: 100, failed: 0 });
  expect(Object.keys(row!.by_operation)).toEqual(['search', 'upsert', 'score']);
  expect(row!.latency_ms.p50).toBeGreaterThan(0);
  expect(row!.resources.encoderCores).toBeGreaterThan(0);
  expect(row!.resources.encoderLoopCores).toBeGreaterThan(0);
  expect(row!.resources.encoderLoopCores).toBeLessThan(row!.resources.encoderCores);
  expect(row!.resources.engineCores).toBeGreaterThanOrEqual(0);
  const { indexes } = row!.resources;
  expect(indexes.memoryBytesPerTokenVector).toBeGreaterThan(0);
  expect(indexes.memoryBytesPerTokenVector).toBeLessThan(indexes.diskBytesPerTokenVector);
  expect(indexes.plans['exact']).toBeGreaterThan(0);
  expect(ended.printed).toMatch(/in memory; searches: \d+ exact \(few chunks/);
  expect(readFileSync(html, 'utf8')).toContain('<svg');
  const compared = await watched(['capacity', '--compare', json, json], () => undefined);
  expect(compared.printed).toContain('| rate/s | A p50 ms |');
}, 120_000);

it('takes one client first, and shares the rates among several services', async () => {
  const json = path.join(await newDirectory(), 'report.json');
  const args =
    '--services 2 --stores-at-once 2 --rest --one-client 10 --documents 30 --rates 40 --step-seconds 1';
  const ended = await watched(['capacity', ...args.split(' '), '--json', json], () => undefined);
  expect(ended.code, ended.reported).toBe(0);
  expect(ended.left).toEqual([]);
  expect(ended.printed).toMatch(/one client: p50 .* of 10 searches/);
  const report = reportIn(json);
  expect(report).toMatchObject({
    settings: { services: 2 },
    stored_seconds: expect.any(Number) as number,
    one_client: { searches: 10, latency_ms: { p99: expect.any(Number) as number } },
  });
  expect(report.rows.map(({ failed }) => failed)).toEqual([0]);
}, 120_000);

async function addressOf(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('a service given by address', () => {
  /** A service that takes documents when asked to, and the routes of the indexes that it was asked to delete. */
  async function failingService(onDocuments: (answer: (status: number) => void) => void, deleteStatus = 204) {
    const deleted: string[] = [];
    const listener: RequestListener = (request, response) => {
      request.resume();
      const answer = (status: number): void => {
        response.writeHead(status, { connection: 'close' });
        response.end(status === 204 ? undefined : '{"id":"index-1","error":"none"}');
      };
      if (request.method === 'DELETE') {
        deleted.push(`DELETE ${request.url}`);
        answer(deleteStatus);
      } else if (request.url === '/v1/indexes') answer(201);
      else onDocuments(answer);
    };
    const address = await addressOf(createServer(listener));
    return { deleted, args: ['capacity', '--url', `http://${address}`, '--key', 'key', '--documents', '60'] };
  }

  it('loses its index when storing fails', async () => {
    const { deleted, args } = await failingService((answer) => answer(503));
    const { code, reported } = await watched(args, () => undefined);
    expect(code).toBe(1);
    expect(reported).toContain('/v1/indexes/index-1/documents: 503');
    expect(deleted).toEqual(['DELETE /v1/indexes/index-1']);
  }, 120_000);

  it('loses its index when storing is interrupted', async () => {
    const waiting = Promise.withResolvers<(status: number) => void>();
    const { deleted, args } = await failingService(waiting.resolve);
    const { code } = await watched(args, async (line, child) => {
      if (line.startsWith('storing')) {
        const answer = await waiting.promise;
        child.kill('SIGINT');
        // It says so when it has it.
        child.stderr!.once('data', () => answer(201));
      }
    });
    expect(code).toBe(130);
    expect(deleted).toEqual(['DELETE /v1/indexes/index-1']);
  }, 120_000);

  it('is said to keep an index that cannot be deleted', async () => {
    const { args } = await failingService((answer) => answer(503), 500);
    const { reported } = await watched(args, () => undefined);
    expect(reported).toMatch(/documents: 503.*is left there.*index-1: 500/);
  }, 120_000);

  it('is spoken to over TLS where the address says so', async () => {
    const { certificateFile, keyFile } = await makeCertificate(await newDirectory());
    const server = createTlsServer(
      { cert: readFileSync(certificateFile), key: readFileSync(keyFile) },
      (request, response) => {
        request.resume();
        response.end('{"id":"index-1"}');
      },
    );
    const json = path.join(await newDirectory(), 'report.json');
    const url = `https://${await addressOf(server)}`;
    const args = '--key key --documents 1 --rates 100 --step-seconds 1'.split(' ');
    const ended = await watched(['capacity', '--url', url, ...args, '--json', json], () => undefined, {
      NODE_EXTRA_CA_CERTS: certificateFile,
    });
    expect(ended.code, ended.reported).toBe(0);
    expect(reportIn(json).rows.map(({ failed }) => failed)).toEqual([0]);
  }, 120_000);
});
