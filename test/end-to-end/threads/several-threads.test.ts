/** Several threads serve the API on one port: limits, usage and metrics are those of one service. */
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { connect as connectTls } from 'node:tls';
import { afterAll, expect, test } from 'vitest';
import { call, expectError, expectReply } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { eventually, within } from '../../support/running/eventually.ts';
import { launchServer, makeScratch } from '../../support/running/launch.ts';
import { readMetric, startServer } from '../../support/running/server.ts';
import { useStage } from '../../support/running/stage.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { openRaw, type RawConnection } from '../../support/network/raw-http.ts';
import { makeCertificate } from '../../support/network/tls.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { ranked } from '../../support/running/wire.ts';

const threads = 3;
const env = { MAXSIMD_API_THREADS: String(threads) };
const stage = useStage({ env, metrics: true, sharedEncoder: true });
const failingThread = pathToFileURL(path.join(import.meta.dirname, 'failing-thread.ts')).href;

const rawScore = JSON.stringify({ query: 'river', documents: [{ doc_id: 'a', text: 'stone' }] });

/** Sends the header and half of the body, on a connection of its own. */
async function beginScore(key: string): Promise<RawConnection> {
  const connection = await openRaw(stage.server.url);
  await connection.flush(
    `POST /v1/score HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${rawScore.length}\r\n\r\n${rawScore.slice(0, 10)}`,
  );
  return connection;
}

/** Listening sockets of a port, by the kernel's table. */
async function listenersOf(url: string): Promise<number> {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0');
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n');
  return rows.filter((row) => row.includes(`:${port} 00000000:0000 0A`)).length;
}

test('each thread listens on the port', async () => {
  expect(await listenersOf(stage.server.url)).toBe(threads);
});

test('documents are stored and found over any connection', async () => {
  const { client } = stage;
  const { id } = await makeIndex(client);
  await put(client, id, [{ doc_id: 'a', text: 'the river runs', metadata: { a: 1 } }]);
  const found = await Promise.all(Array.from({ length: 30 }, () => find(client, id, { query: 'river' })));
  expect(found.map(({ results }) => results.map(({ doc_id: docId }) => docId))).toEqual(
    found.map(() => ['a']),
  );
  // Another thread may tell its searches a moment later.
  await expect
    .poll(async () => (await client.send('GET', '/v1/activity')).body)
    .toMatchObject({ data: [{ index_id: id, hour: { searches: 30, errors: 0 } }] });
});

test('the rate limit and the usage are exact over connections to different threads', async () => {
  const { key, client } = await stage.newTenant({ requestsPerMinute: 20, maxConcurrentRequests: 100 });
  const before = await readMetric(stage.server, 'maxsimd_http_requests_total');
  const replies = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const connection = await openRaw(stage.server.url);
      await connection.flush(`GET /v1/usage HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
      return connection.reply();
    }),
  );
  const statuses = replies.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(20);
  expect(statuses.filter((status) => status === 429)).toHaveLength(40);
  await stage.operate('tenant', 'limits', stage.tenant.id, '--requests-per-minute', '1000000');
  expect(await readMetric(stage.server, 'maxsimd_http_requests_total')).toBe(before + 60);
  expectError(await client.usage(), 429, 'rate_limit_exceeded');
});

test('the concurrency limit is exact, and a client that leaves gives its slot back', async () => {
  const { key, client } = await stage.newTenant({ requestsPerMinute: 1_000, maxConcurrentRequests: 4 });
  const connections = await Promise.all(Array.from({ length: 12 }, () => beginScore(key)));
  await eventually(() => connections.filter((connection) => connection.answered()).length === 8);
  const [first, second, third, fourth] = connections.filter((connection) => !connection.answered());
  expectError(await client.usage(), 429, 'concurrency_limit_exceeded');
  first?.write(rawScore.slice(10));
  expect((await first?.reply())?.status).toBe(200);
  for (const connection of [second, third, fourth]) connection?.cut();
  await eventually(async () => (await client.usage()).status === 200);
  await eventually(async () => (await readMetric(stage.server, 'maxsimd_requests_admitted')) === 0);
  const { usage } = await readUsage(client);
  expect(usage.scores).toBe(1);
});

test('a caller who waits for each answer holds no slot when the next request comes to another thread', async () => {
  const { key } = await stage.newTenant({ requestsPerMinute: 10_000, maxConcurrentRequests: 1 });
  const connections = await Promise.all(Array.from({ length: 400 }, () => openRaw(stage.server.url)));
  const statuses: number[] = [];
  for (const connection of connections) {
    connection.write(`GET /v1/usage HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    statuses.push((await connection.reply()).status);
  }
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
});

test('large bodies on many connections share one room, and all are answered', async () => {
  const { client } = await stage.newTenant({ requestsPerMinute: 1_000, maxConcurrentRequests: 100 });
  const rawBody = rawScore + ' '.repeat(4_000_000);
  const replies = await Promise.all(
    Array.from({ length: 24 }, () => client.send('POST', '/v1/score', { rawBody })),
  );
  for (const reply of replies) if (reply.status !== 503) expectReply(reply, ranked);
  expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThan(6);
});

test('a second service on the port ends at once', async () => {
  const { port } = new URL(stage.server.url);
  const second = await launchServer({ env: { ...env, MAXSIMD_HTTP_PORT: port } });
  const { code } = await within('the refusal', second.exited);
  expect([code, second.output().stderr]).toEqual([
    2,
    `maxsimd: MAXSIMD_HTTP_PORT: port ${port} of 127.0.0.1 is in use; choose another, or 0 for any free one\n`,
  ]);
  await second.scratch.remove();
});

test('a thread that fails ends the service cleanly, with exit code 1', async () => {
  const scratch = await makeScratch();
  afterAll(() => scratch.remove());
  const file = path.join(scratch.root, 'fail');
  const server = await startServer({
    scratch,
    sharedEncoder: true,
    env: { ...env, NODE_OPTIONS: `--import=${failingThread}`, TEST_FAILING_THREAD: file },
  });
  const { client, key } = await createTenant(server);
  const { id } = await makeIndex(client);
  await put(client, id, [{ doc_id: 'a', text: 'river' }]);
  // Requests in flight on each of the threads.
  const asked = Promise.allSettled(
    Array.from({ length: 12 }, async () => {
      const connection = await openRaw(server.url);
      await connection.flush(
        `POST /v1/score HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${rawScore.length}\r\n\r\n${rawScore}`,
      );
      return connection.reply();
    }),
  );
  await writeFile(file, '');
  expect(await within('the end', server.exited)).toEqual({ code: 1, signal: null });
  const lines = server.output().stderr.split('\n');
  expect(lines.filter((line) => line.includes('shutting down after a defect'))).toEqual([
    expect.stringContaining('this is a bug: planted'),
  ]);
  expect(lines.some((line) => line.includes('"closed"'))).toBe(true);
  const outcomes = await asked;
  for (const outcome of outcomes)
    if (outcome.status === 'fulfilled') expect([200, 503]).toContain(outcome.value.status);
  const again = await startServer({ scratch, sharedEncoder: true, env });
  const { results } = expectReply(
    await call(`${again.url}/v1/indexes/${id}/search`, { key, body: { query: 'river' } }),
    ranked,
  );
  expect(results).toHaveLength(1);
  await again.stop();
});

test('while a thread hangs, no thread says that the process is alive', async () => {
  const scratch = await makeScratch();
  afterAll(() => scratch.remove());
  const file = path.join(scratch.root, 'hang');
  const server = await startServer({
    scratch,
    sharedEncoder: true,
    env: { ...env, NODE_OPTIONS: `--import=${failingThread}`, TEST_FAILING_THREAD: file },
  });
  const health = `${server.url}/healthz`;
  expect((await call(health)).status).toBe(200);
  await writeFile(`${file}.new`, 'hang');
  await rename(`${file}.new`, file);
  await eventually(() => existsSync(`${file}.taken`));
  const answers = Array.from({ length: 12 }, () => call(health, { withinMs: 1_000 }));
  const outcomes = await Promise.allSettled(answers);
  expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 'rejected'));
  await server.kill();
});

test('new connections of every thread are shown a certificate that was replaced', async () => {
  const [directory, renewed] = [await newDirectory(), await newDirectory()];
  const first = await makeCertificate(directory);
  const second = await makeCertificate(renewed);
  const server = await startServer({
    sharedEncoder: true,
    env: { ...env, MAXSIMD_TLS_FILES: `${first.certificateFile},${first.keyFile}` },
  });
  const shown = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connectTls(
        { host: '127.0.0.1', port: Number(new URL(server.url).port), rejectUnauthorized: false },
        () => {
          resolve(socket.getPeerCertificate().raw.toString('base64'));
          socket.destroy();
        },
      );
      socket.once('error', reject);
    });
  const all = async (): Promise<string[]> => {
    const certificates = await Promise.all(Array.from({ length: 24 }, shown));
    return [...new Set(certificates)];
  };
  const base64Of = (pem: string): string => pem.replaceAll(/-----[^-]+-----|\s/g, '');
  expect(server.url).toMatch(/^https:/);
  expect(await all()).toEqual([base64Of(first.certificate)]);
  await rename(second.certificateFile, first.certificateFile);
  await rename(second.keyFile, first.keyFile);
  await eventually(async () => {
    const certificates = await all();
    return certificates.length === 1 && certificates[0] === base64Of(second.certificate);
  });
  expect(await server.stop()).toEqual({ code: 0, signal: null });
});
