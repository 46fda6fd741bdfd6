/** SIGTERM, restart, and what is left of a server that was killed. */
import { once } from 'node:events';
import { createConnection } from 'node:net';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { call, connect, expectError, expectReply, type Client } from '../support/running/client.ts';
import { createTenant } from '../support/commands/command-line.ts';
import type { TestTenant } from '../support/commands/operators.ts';
import { eventually, within } from '../support/running/eventually.ts';
import { encodersOf, isAlive } from '../support/running/processes.ts';
import { createRandom } from '../support/running/random.ts';
import { makeCertificate } from '../support/network/tls.ts';
import { openRaw } from '../support/network/raw-http.ts';
import { makeScratch, type Scratch } from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { find, makeIndex, put, readUsage, sendLong } from '../support/running/requests.ts';
import { passages, recombine, textOfTokens } from '../support/running/texts.ts';
import { indexList, upserted } from '../support/running/wire.ts';

let scratch: Scratch;
/** Each test goes on with the server that the test before it left, or starts one on the same directory. */
let server: ServerProcess;

beforeAll(async () => {
  scratch = await makeScratch();
  server = await startServer({ scratch, sharedEncoder: true });
});

afterAll(async () => {
  await server?.kill();
  await scratch.remove();
});

async function newTenant(): Promise<TestTenant> {
  return createTenant(server, { requestsPerMinute: 100_000, maxConcurrentRequests: 1 });
}

async function expectEncodersEnd(encoders: readonly { readonly pid: number }[]): Promise<void> {
  expect(encoders.length).toBeGreaterThan(0);
  for (const { pid } of encoders) await eventually(async () => !(await isAlive(pid)));
}

describe('Restart', () => {
  test('search results, indexes and usage are identical after SIGTERM and restart', async () => {
    const tenant = await newTenant();
    const { client } = tenant;
    const random = createRandom(5);
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 48, overlap_tokens: 8, minimum_chunk_tokens: 8 },
      match_fields: ['kind'],
    });
    await put(
      client,
      id,
      passages.map((passage) => ({
        doc_id: passage.subject,
        text: passage.text,
        metadata: { kind: passage.subject },
      })),
    );
    for (const passage of passages.slice(0, 8)) await client.deleteDocument(id, passage.subject);
    await put(
      client,
      id,
      passages.slice(8, 16).map((passage) => ({ doc_id: passage.subject, text: recombine(random, 90) })),
    );
    const named = { query: namedKind, top_k: 1 };
    const [best] = (await find(client, id, named)).results;
    const [plain] = (await find(client, id, { ...named, match: false })).results;
    expect(best!.score).toBeGreaterThan(plain!.score);
    const before = await everything(client, id);
    expect(await server.stop()).toEqual({ code: 0, signal: null });
    server = await startServer({ scratch, sharedEncoder: true });
    expect(await everything(connect(server.url, tenant.key), id)).toEqual(before);
    // And after a crash.
    await server.kill();
    server = await startServer({ scratch, sharedEncoder: true });
    expect(await everything(connect(server.url, tenant.key), id)).toEqual(before);
  });

  test('SIGTERM drains: the request in flight finishes, the server is not ready meanwhile, and a repeated SIGTERM does not cut it short', async () => {
    const tenant = await newTenant();
    const { client } = tenant;
    const { id } = await makeIndex(client);
    const random = createRandom(6);
    const documents = Array.from({ length: 50 }, (_, position) => ({
      doc_id: `d${position}`,
      text: recombine(random, 160),
    }));
    const inFlight = await sendLong(client, () => client.upsert(id, documents));
    server.signal('SIGTERM');
    const unready = await eventually(async () => {
      const reply = await call(`${server.url}/readyz`);
      return reply.status === 503 ? reply : undefined;
    });
    expect(unready.headers.get('x-request-id')).toMatch(/\S/);
    const refused = await call(`${server.url}/v1/usage`, { key: tenant.key });
    expectError(refused, 503, 'service_unavailable');
    server.signal('SIGTERM');
    server.signal('SIGTERM');
    const reply = expectReply(await inFlight.reply, upserted);
    expect(reply).toMatchObject({ upserted_documents: 50, failed: [] });
    server.signal('SIGTERM');
    expect(await within('the drain', server.exited)).toEqual({ code: 0, signal: null });
    server = await startServer({ scratch, sharedEncoder: true });
    const { usage } = await readUsage(connect(server.url, tenant.key));
    expect(usage).toMatchObject({ documents: 50, document_upserts: 50 });
  });

  test('a connection that is idle, or has asked nothing yet, does not hold the drain, and a request that never ends only for MAXSIMD_TIMEOUT_UPSERT_MS', async () => {
    const tenant = await newTenant();
    await tenant.client.usage();
    await openRaw(server.url);
    let started = performance.now();
    expect(await server.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - started).toBeLessThan(60_000);
    server = await startServer({ scratch, sharedEncoder: true, env: { MAXSIMD_TIMEOUT_UPSERT_MS: '2000' } });
    const endless = await openRaw(server.url);
    endless.write(
      `POST /v1/score HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tenant.key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    );
    await connect(server.url, tenant.key).send('GET', '/healthz');
    started = performance.now();
    expect(await server.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - started).toBeLessThan(60_000);
  });

  test('nor does a connection that has not begun its TLS handshake', async () => {
    const { certificateFile, keyFile } = await makeCertificate(scratch.root);
    const tls = { MAXSIMD_TLS_FILES: `${certificateFile},${keyFile}` };
    server = await startServer({ scratch, sharedEncoder: true, env: tls });
    const { port, hostname } = new URL(server.url);
    const silent = createConnection(Number(port), hostname).on('error', () => undefined);
    await once(silent, 'connect');
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  });

  test('a kill in the middle of an encoder’s work leaves no orphan', async () => {
    server = await startServer({ scratch });
    const { client } = await newTenant();
    const { id } = await makeIndex(client);
    const documents = Array.from({ length: 50 }, (_, position) => ({
      doc_id: `d${position}`,
      text: textOfTokens(400),
    }));
    const inFlight = await sendLong(client, () => client.upsert(id, documents));
    const encoders = await encodersOf(server.pid);
    await server.kill();
    await expect(inFlight.reply).rejects.toThrow(TypeError);
    await expectEncodersEnd(encoders);
  });
});

/** All that a tenant can see of one index and of itself, request counters excepted. */
/** The metadata of a document have it. */
const namedKind = passages.at(-1)!.subject;

async function everything(client: Client, indexId: string): Promise<unknown> {
  const answers: unknown[] = [expectReply(await client.listIndexes(), indexList)];
  for (const passage of passages.slice(0, 12)) {
    answers.push((await find(client, indexId, { query: passage.question, top_k: 100 })).results);
  }
  answers.push(
    (await find(client, indexId, { query: 'light', top_k: 100, filter: { kind: 'olive oil' } })).results,
  );
  answers.push((await find(client, indexId, { query: namedKind, top_k: 100 })).results);
  const { usage } = await readUsage(client);
  answers.push(usage.documents, usage.document_upserts);
  return answers;
}
