/** The services that benchmarks work on: nothing of them is left behind, however a benchmark ends. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createSocketServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runLoad } from '../../bench/capacity/load.ts';
import type { CapacityReport } from '../../bench/capacity/report.ts';
import { openTarget } from '../../bench/capacity/target.ts';
import { Connection } from '../../bench/stages/connection.ts';
import { RequestLog } from '../../bench/stages/request-log.ts';
import { eventually } from '../end-to-end/harness/eventually.ts';
import { childrenOf, encodersOf, isAlive } from '../end-to-end/harness/processes.ts';
import { makeCertificate } from '../end-to-end/harness/tls.ts';

const root = path.resolve(import.meta.dirname, '../..');

function scratchDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-test-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Runs a benchmark until it writes a matching line, then does something to it and gives what became of it. */
async function disturbed(
  args: readonly string[],
  line: RegExp,
  disturb: (benchmark: { readonly pid: number; readonly server: number }) => void,
) {
  const scratch = scratchDirectory();
  const child = spawn(process.execPath, ['bench/main.ts', ...args], {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      TMPDIR: scratch,
      MAXSIMD_MODELS_DIR: path.join(root, 'test/fixtures'),
      MAXSIMD_MODEL: 'colbert-tiny/1',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  let told = '';
  let processes: readonly number[] = [];
  for await (const text of createInterface({ input: child.stderr })) {
    told += `${text}\n`;
    if (!line.test(text) || processes.length > 0) continue;
    const server = (await childrenOf(child.pid!)).find(({ command }) => command.includes('serve'));
    processes = [server!.pid, ...(await encodersOf(server!.pid)).map(({ pid }) => pid)];
    disturb({ pid: child.pid!, server: server!.pid });
  }
  const code = await exited;
  expect(processes, told).toHaveLength(2);
  for (const pid of processes) {
    await eventually(async () => ((await isAlive(pid)) ? undefined : true), {
      withinMs: 10_000,
      what: 'the end of the server and its encoder',
    });
  }
  return { code, told, left: readdirSync(scratch) };
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
      expect(ended.code, ended.told).toBe(code);
      expect(ended.left).toEqual([]);
    },
    60_000,
  );

  it('goes with a capacity benchmark whose terminal has gone, which still reports', async () => {
    const json = path.join(scratchDirectory(), 'report.json');
    const args = [...capacity, '--json', json];
    const ended = await disturbed(args, stepLine, ({ pid }) => process.kill(pid, 'SIGHUP'));
    expect(ended.code, ended.told).toBe(130);
    expect(ended.left).toEqual([]);
    const report = JSON.parse(readFileSync(json, 'utf8')) as CapacityReport;
    expect(report.interrupted).toBe(true);
    expect(report.rows).toHaveLength(1);
  }, 60_000);

  it('that is killed ends the benchmark, which says so and keeps the steps it has', async () => {
    const json = path.join(scratchDirectory(), 'report.json');
    const args = [...capacity, '--json', json];
    const ended = await disturbed(args, stepLine, ({ server }) => process.kill(server, 'SIGKILL'));
    expect(ended.code, ended.told).toBe(1);
    expect(ended.told).toContain('the server ended by itself (SIGKILL)');
    expect(ended.left).toEqual([]);
    const report = JSON.parse(readFileSync(json, 'utf8')) as CapacityReport;
    expect(report.rows.map((row) => row.failed)).toEqual([0]);
  }, 60_000);
});

async function addressOf(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('an index at a service given by address', () => {
  /** A service that takes no documents, and the routes of the indexes that it was told to delete. */
  async function failingService(deleteStatus: number) {
    const deleted: string[] = [];
    const answer: RequestListener = (request, response) => {
      request.resume();
      const route = `${request.method} ${request.url}`;
      if (request.method === 'DELETE') deleted.push(route);
      const status = route === 'POST /v1/indexes' ? 201 : request.method === 'DELETE' ? deleteStatus : 503;
      response.writeHead(status, { connection: 'close' });
      response.end(status === 204 ? undefined : '{"id":"index-1","error":"none"}');
    };
    const address = await addressOf(createServer(answer));
    const remote = { url: `http://${address}`, apiKey: 'key', metricsUrl: undefined };
    return { deleted, options: { remote, texts: ['a'], environment: {} } };
  }

  it('is deleted when storing fails or is interrupted', async () => {
    const { deleted, options } = await failingService(204);
    await expect(openTarget(options)).rejects.toThrow('/v1/indexes/index-1/documents: 503');
    const signal = AbortSignal.abort(new Error('interrupted'));
    await expect(openTarget({ ...options, signal })).rejects.toBe(signal.reason);
    expect(deleted).toEqual(Array(2).fill('DELETE /v1/indexes/index-1'));
  });

  it('is said to be left there when it cannot be deleted', async () => {
    const { options } = await failingService(500);
    await expect(openTarget(options)).rejects.toThrow(/documents: 503.*is left there.*index-1: 500/);
  });
});

describe('the load', () => {
  it('goes over TLS where the address says so', async () => {
    const { certificate, certificateFile, keyFile } = await makeCertificate(scratchDirectory());
    const trusted = getCACertificates('default');
    setDefaultCACertificates([certificate]);
    onTestFinished(() => setDefaultCACertificates(trusted));
    const server = createTlsServer(
      { cert: readFileSync(certificateFile), key: readFileSync(keyFile) },
      (request, response) => {
        request.resume();
        response.end('{}');
      },
    );
    const { samples } = await runLoad({
      url: `https://${await addressOf(server)}`,
      apiKey: 'key',
      arrivals: [{ dueMs: 0, operation: 'search', pick: 0 }],
      bodyOf: () => ({ method: 'POST', path: '/', body: '{}' }),
      outstandingMax: 1,
      timeoutMs: 5000,
      signal: new AbortController().signal,
      onSample: () => undefined,
    });
    expect(samples.map(({ status }) => status)).toEqual([200]);
  });
});

describe('what the stages are read from', () => {
  it('hands on what is no line of the log, and finds the searches among the rest', async () => {
    const foreign: string[] = [];
    const log = new RequestLog((line) => foreign.push(line));
    const warning = '(node:1) ExperimentalWarning: this may change';
    const search = { request_id: 'b', timings_ms: { encode: 1 } };
    for (const line of [warning, '17', '{"request_id":"a","timings_ms":{}}', JSON.stringify(search)]) {
      log.add(line);
    }
    expect(await log.take('b')).toEqual(search);
    expect(foreign).toEqual([warning, '17']);
    const waiting = log.take('a');
    log.end(new Error('the server has gone'));
    await expect(waiting).rejects.toThrow('the server has gone');
  });

  it('fails when the connection ends before the answer', async () => {
    const server = createSocketServer((socket) => socket.once('data', () => socket.destroy()));
    const connection = new Connection(`http://${await addressOf(server)}`);
    await expect(connection.exchange('POST / HTTP/1.1\r\n\r\n')).rejects.toThrow(/closed|ECONNRESET/);
    await expect(connection.exchange('POST / HTTP/1.1\r\n\r\n')).rejects.toThrow(/closed|ECONNRESET/);
  });
});
