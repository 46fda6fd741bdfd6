/** The capacity benchmark, and that nothing of a service is left behind, however a benchmark ends. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/running/eventually.ts';
import { childrenOf, encodersOf, isAlive } from '../../support/running/processes.ts';
import { makeCertificate } from '../../support/network/tls.ts';
import { benchmarkEnvironment, root, tinyModel } from '../../support/run-benchmark.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

interface CapacityReport {
  readonly rows: readonly {
    readonly by_operation: object;
    readonly resources: Readonly<Record<'encoderCores' | 'encoderLoopCores' | 'engineCores', number>> & {
      readonly indexes: {
        readonly diskBytesPerTokenVector: number;
        readonly memoryBytesPerTokenVector: number;
        readonly plans: Readonly<Record<string, number>>;
      };
    };
  }[];
}

/** Runs a benchmark to its end, does something to it at each line that it writes, and gives what became of it. */
async function watched(
  args: readonly string[],
  onLine: (line: string, child: ChildProcess) => Promise<void> | void,
  environment: Readonly<Record<string, string>> = {},
) {
  const scratch = await newDirectory();
  const json = path.join(await newDirectory(), 'report.json');
  const child = spawn(process.execPath, ['bench/main.ts', ...args, '--json', json], {
    cwd: root,
    env: { ...benchmarkEnvironment, TMPDIR: scratch, ...tinyModel, ...environment },
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
  const report = (): CapacityReport => JSON.parse(readFileSync(json, 'utf8')) as CapacityReport;
  return { code: await exited, reported, printed, left: readdirSync(scratch), report };
}

/** Does something once, at the first line that matches, and sees that all servers and encoders are gone in the end. */
async function disturbed(args: readonly string[], line: RegExp, disturb: (benchmark: number) => void) {
  const processes: number[] = [];
  const ended = await watched(args, async (text, { pid }) => {
    if (!line.test(text) || processes.length > 0) return;
    const servers = (await childrenOf(pid!)).filter(({ command }) => command.includes('serve'));
    for (const server of servers)
      processes.push(server.pid, ...(await encodersOf(server.pid)).map((encoder) => encoder.pid));
    disturb(pid!);
  });
  expect(processes.length, ended.reported).toBeGreaterThan(1);
  for (const pid of processes) {
    await eventually(async () => !(await isAlive(pid)));
  }
  expect(ended.left).toEqual([]);
  return ended;
}

it('measures services, and reports also when it is interrupted', async () => {
  const args =
    '--services 2 --stores-at-once 2 --mix search=2,upsert=1,score=1 --rates 100,120,140 --step-seconds 1 --documents 20';
  const ended = await disturbed(['capacity', ...args.split(' ')], /^100\/s: p50 /, (benchmark) =>
    process.kill(benchmark, 'SIGINT'),
  );
  expect(ended.code, ended.reported).toBe(130);
  expect(ended.printed).toMatch(/\(interrupted\)[^]*exact \(few chunks/);
  const report = ended.report();
  expect(report).toMatchObject({
    interrupted: true,
    settings: { services: 2 },
    verdict: { resource: expect.any(String) as string },
    rows: [{ rate_per_second: 100, failed: 0 }],
  });
  const [row] = report.rows;
  expect(Object.keys(row!.by_operation)).toEqual(['search', 'upsert', 'score']);
  expect(row!.resources.encoderLoopCores).toBeGreaterThan(0);
  expect(row!.resources.encoderLoopCores).toBeLessThan(row!.resources.encoderCores);
  const { indexes } = row!.resources;
  expect(indexes.memoryBytesPerTokenVector).toBeGreaterThan(0);
  expect(indexes.memoryBytesPerTokenVector).toBeLessThan(indexes.diskBytesPerTokenVector);
});

it('a benchmark that a signal ends takes its server and files with it', async () => {
  const stages = ['stages', '--documents', '4', '--queries', '4', '--warm-up', '4', '--rounds', '50'];
  const ended = await disturbed(stages, /^round 1/, (benchmark) => process.kill(benchmark, 'SIGHUP'));
  expect(ended.code, ended.reported).toBe(129);
});

it('a service given by address is spoken to over TLS, and loses its index when storing fails', async () => {
  const { certificateFile, keyFile } = await makeCertificate(await newDirectory());
  const deleted: string[] = [];
  const server = createTlsServer(
    { cert: readFileSync(certificateFile), key: readFileSync(keyFile) },
    (request, response) => {
      request.resume();
      if (request.method === 'DELETE') deleted.push(request.url ?? '');
      if (request.url?.endsWith('/documents')) response.statusCode = 503;
      response.end('{"id":"index-1"}');
    },
  );
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const args = ['capacity', '--url', url, '--key', 'key', '--documents', '1'];
  const { code, reported } = await watched(args, () => undefined, { NODE_EXTRA_CA_CERTS: certificateFile });
  expect(code).toBe(1);
  expect(reported).toContain('/v1/indexes/index-1/documents: 503');
  expect(deleted).toEqual(['/v1/indexes/index-1']);
});
