/** "Limits": every limit exactly at its value and one over, and the exact `Retry-After` of each refusal. */
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';

import { expectError, expectReply, type Reply } from '../../../support/running/client.ts';
import { startNodes } from '../../../support/cluster/nodes.ts';
import { createTenant } from '../../../support/commands/command-line.ts';
import { eventually, pause } from '../../../support/running/eventually.ts';
import { isClustered } from '../../../support/running/launch.ts';
import { startServer, type ServerProcess } from '../../../support/running/server.ts';
import { openRaw, type RawConnection } from '../../../support/network/raw-http.ts';
import { useSharedStage } from '../../../support/running/stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { textOfTokens } from '../../../support/running/texts.ts';
import { deleted, ranked, upserted } from '../../../support/running/wire.ts';

const stage = useSharedStage();
const movedClock = pathToFileURL(path.resolve(import.meta.dirname, '../../../support/moved-clock.ts')).href;
const waitMs = 55_000;

const retryAfterOf = (reply: Reply): number => Number(reply.headers.get('retry-after'));

function secondsToNextMonth(now: Date): number {
  return (Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime()) / 1000;
}

/** Pads JSON with white space to an exact number of bytes. */
function padded(body: unknown, bytes: number): string {
  const json = JSON.stringify(body);
  return json + ' '.repeat(bytes - Buffer.byteLength(json));
}

describe('Limits', () => {
  test('[limits-6] JSON body | 5 MiB', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const limit = 5 * 1024 * 1024;
    const bodies: readonly (readonly [string, unknown])[] = [
      [`/v1/indexes/${id}/documents`, { documents: [{ doc_id: 'a', text: 'river' }] }],
      [`/v1/indexes/${id}/search`, { query: 'river' }],
      ['/v1/score', { query: 'river', documents: [{ doc_id: 'a', text: 'stone' }] }],
      ['/v1/indexes', { name: 'of a large request' }],
    ];
    for (const [route, body] of bodies) {
      expect([200, 201]).toContain(
        (await client.send('POST', route, { rawBody: padded(body, limit) })).status,
      );
      expectError(
        await client.send('POST', route, { rawBody: padded(body, limit + 1) }),
        413,
        'validation_error',
      );
    }
    // Chunked, so that no Content-Length announces the size.
    const connection = await openRaw(stage.server.url);
    connection.write(
      `POST /v1/score HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${client.key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const part = ' '.repeat(1024 * 1024);
    for (let count = 0; count < 5; count += 1) connection.write(`100000\r\n${part}\r\n`);
    connection.write('1\r\n \r\n0\r\n\r\n');
    expect((await connection.reply()).status).toBe(413);
  });

  test('[errors-8, limits-3, errors-14, decision-33] 429 | `concurrency_limit_exceeded` | Tenant concurrency limit exceeded. Concurrent requests | 2. For `concurrency_limit_exceeded`, clients reduce concurrency. in-flight requests of the tenant, released when the response is closed and its work has ended or been dropped; `Retry-After: 1`', async () => {
    const tenant = await stage.newTenant({ requestsPerMinute: 100_000 });
    const body = JSON.stringify({ query: 'river', documents: [{ doc_id: 'a', text: 'stone' }] });
    // A request whose body is only half here is in flight for as long as the test likes.
    const begin = async (): Promise<RawConnection> => {
      const connection = await openRaw(stage.server.url);
      connection.write(
        `POST /v1/score HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tenant.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
      );
      return connection;
    };
    // Holds one more slot, the last one; resolves with the refusal of a request beyond it. Watching takes a slot
    // for a moment, so what was refused for that is begun again.
    const holdLast = async (): Promise<{ readonly connection: RawConnection; readonly refusal: Reply }> => {
      let connection = await begin();
      const refusal = await eventually(async () => {
        if (connection.answered()) connection = await begin();
        const reply = await tenant.client.usage();
        return reply.status === 200 || connection.answered() ? undefined : reply;
      });
      return { connection, refusal };
    };
    const first = await begin();
    const { connection: second, refusal: reply } = await holdLast();
    expectError(reply, 429, 'concurrency_limit_exceeded');
    expect(reply.headers.get('retry-after')).toBe('1');
    expect(reply.headers.get('ratelimit-limit')).toMatch(/^\d+$/);
    // Other tenants are not concerned.
    expect((await stage.client.usage()).status).toBe(200);
    first.write(body.slice(10));
    expect((await first.reply()).status).toBe(200);
    // One slot is free as soon as that response is closed; the second is still held.
    await eventually(async () => (await tenant.client.usage()).status === 200);
    const { connection: third, refusal: again } = await holdLast();
    expectError(again, 429, 'concurrency_limit_exceeded');
    // A client that goes away gives its slot back.
    third.cut();
    second.cut();
    await eventually(async () => {
      const replies = await Promise.all([tenant.client.usage(), tenant.client.usage()]);
      return replies.every((one) => one.status === 200);
    });
  });

  test('[errors-9, decision-30] 429 | `usage_limit_exceeded` | Monthly input-token allowance exhausted. for upsert, search and score only: refused when this request would exceed it (reserved atomically, unused part returned); `Retry-After` = seconds to the next UTC month', async () => {
    const tenant = await stage.newTenant({ requestsPerMinute: 1000, inputTokens: 40 });
    const { client } = tenant;
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'a', text: textOfTokens(20) }]);
    const before = await readUsage(client);
    const over = [
      await client.upsert(id, [
        { doc_id: 'b', text: textOfTokens(11) },
        { doc_id: 'c', text: textOfTokens(10) },
      ]),
      await client.search(id, { query: textOfTokens(21) }),
      await client.score({ query: textOfTokens(11), documents: [{ doc_id: 'a', text: textOfTokens(10) }] }),
    ];
    for (const reply of over) {
      expectError(reply, 429, 'usage_limit_exceeded');
      expect(Math.abs(retryAfterOf(reply) - secondsToNextMonth(new Date()))).toBeLessThanOrEqual(2);
    }
    // Nothing was charged, nothing was stored.
    const after = await readUsage(client);
    expect({ ...after.usage, requests: 0 }).toEqual({ ...before.usage, requests: 0 });
    expect(after.usage.requests).toBe(before.usage.requests + 1);
    // A request that uses the allowance up exactly passes, whatever its kind.
    await put(client, id, [{ doc_id: 'b', text: textOfTokens(10) }]);
    await find(client, id, { query: textOfTokens(5) });
    expectReply(
      await client.score({ query: 'river', documents: [{ doc_id: 'a', text: textOfTokens(4) }] }),
      ranked,
    );
    expect((await readUsage(client)).remaining.input_tokens).toBe('0');
    expectError(await client.search(id, { query: 'river' }), 429, 'usage_limit_exceeded');
    // Only these three spend tokens.
    await makeIndex(client);
    expect((await client.listIndexes()).status).toBe(200);
    expect(expectReply(await client.deleteDocument(id, 'a'), deleted)).toEqual({ deleted: true });
    // Room again after the operator raised the allowance.
    await stage.operate('tenant', 'limits', tenant.id, '--input-tokens', '41');
    await eventually(async () => (await client.search(id, { query: 'river' })).status === 200);
  });

  test('requests at the same time share the monthly allowance to the last token', async () => {
    const tenant = await stage.newTenant({
      requestsPerMinute: 1000,
      maxConcurrentRequests: 20,
      inputTokens: 100,
    });
    const { id } = await makeIndex(tenant.client);
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, position) =>
        tenant.client.upsert(id, [{ doc_id: `d${position}`, text: textOfTokens(15) }]),
      ),
    );
    const stored = replies.filter((reply) => reply.status === 200);
    for (const reply of replies) if (reply.status !== 200) expectError(reply, 429, 'usage_limit_exceeded');
    expect(stored).toHaveLength(6);
    expect((await readUsage(tenant.client)).usage).toMatchObject({ input_tokens: '90', documents: 6 });
  });

  test('[limits-14] a request that would exceed the stored-document allowance gives 422: over all indexes, nothing stored, replacements welcome', async () => {
    const tenant = await stage.newTenant({
      requestsPerMinute: 1000,
      maxConcurrentRequests: 20,
      documents: 3,
    });
    const { client } = tenant;
    const [one, other] = [await makeIndex(client), await makeIndex(client)];
    const of = (...ids: readonly string[]): { doc_id: string; text: string }[] =>
      ids.map((docId) => ({ doc_id: docId, text: 'river stone' }));
    await put(client, one.id, of('a', 'b'));
    const before = await readUsage(client);
    // Over all indexes, and nothing of the request is stored or charged.
    expectError(await client.upsert(other.id, of('c', 'd')), 422, 'validation_error');
    expectError(await client.upsert(one.id, of('a', 'c', 'd')), 422, 'validation_error');
    const refused = await readUsage(client);
    expect({ ...refused.usage, requests: 0 }).toEqual({ ...before.usage, requests: 0 });
    expect((await find(client, other.id, { query: 'river' })).results).toEqual([]);
    // Exactly at the allowance.
    await put(client, other.id, of('c'));
    expect((await readUsage(client)).remaining.documents).toBe(0);
    // At the limit replacements are welcome, alone or with an item that fails.
    await put(client, one.id, of('a', 'b'));
    const mixed = expectReply(
      await client.upsert(one.id, [...of('a'), { doc_id: 'new but blank', text: ' ' }]),
      upserted,
    );
    expect(mixed).toMatchObject({ upserted_documents: 1, failed: [{ doc_id: 'new but blank' }] });
    expectError(await client.upsert(one.id, of('e')), 422, 'validation_error');
    // A deletion makes room.
    await client.deleteDocument(other.id, 'c');
    await put(client, one.id, of('e'));
    expect((await readUsage(client)).usage.documents).toBe(3);
    // So does the deletion of an index.
    await client.send('DELETE', `/v1/indexes/${one.id}`);
    expect((await readUsage(client)).usage.documents).toBe(0);
  });

  test('requests at the same time share the stored-document allowance to the last document', async () => {
    const tenant = await stage.newTenant({
      requestsPerMinute: 1000,
      maxConcurrentRequests: 30,
      documents: 10,
    });
    const { id } = await makeIndex(tenant.client);
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, position) =>
        tenant.client.upsert(id, [{ doc_id: `d${position}`, text: 'river' }]),
      ),
    );
    expect(replies.map((reply) => reply.status).toSorted((left, right) => left - right)).toEqual([
      ...Array.from({ length: 10 }, () => 200),
      ...Array.from({ length: 10 }, () => 422),
    ]);
    expect((await readUsage(tenant.client)).usage.documents).toBe(10);
  });

  test('[limits-2, limits-3, limits-4, limits-5] Requests per minute | 60; Concurrent requests | 2; Input tokens per UTC month | 50,000,000; Stored documents | 100,000', async () => {
    const tenant = await stage.newTenant({});
    expect((await readUsage(tenant.client)).limits).toEqual({
      requests_per_minute: 60,
      max_concurrent_requests: 2,
      input_tokens: '50000000',
      documents: 100_000,
    });
    // The summary was the first request; 59 more fit.
    for (let count = 2; count <= 60; count += 1) expect((await tenant.client.usage()).status).toBe(200);
    expectError(await tenant.client.usage(), 429, 'rate_limit_exceeded');
  });

  test('[limits-13, errors-12] Effects: exceeding request rate, concurrency or the monthly token allowance gives 429 (codes above)', async () => {
    // The three codes side by side, each with what the client may do next.
    const tenant = await stage.newTenant({ requestsPerMinute: 2, inputTokens: 1 });
    const documents = [{ doc_id: 'a', text: textOfTokens(2) }];
    expectError(await tenant.client.score({ query: 'river', documents }), 429, 'usage_limit_exceeded');
    // A request refused for its tokens was an authenticated request all the same.
    expect((await tenant.client.usage()).status).toBe(200);
    const reply = await tenant.client.score({ query: 'river', documents });
    expectError(reply, 429, 'rate_limit_exceeded');
    expect(retryAfterOf(reply)).toBeLessThanOrEqual(60);
  });

  test('[decision-29, decision-24] every authenticated request counts; `RateLimit-*` headers', async () => {
    const tenant = await stage.newTenant({ requestsPerMinute: 6 });
    const { client } = tenant;
    const replies = [
      await client.usage(),
      await client.send('GET', '/v1/nowhere'),
      await client.search('not-a-uuid', { query: 'river' }),
      await client.send('POST', '/v1/score', { rawBody: '{' }),
      await client.send('POST', '/v1/score', { rawBody: 'x', headers: { 'content-type': 'text/plain' } }),
      await client.listIndexes(),
    ];
    expect(replies.map((reply) => reply.status)).toEqual([200, 404, 422, 422, 415, 200]);
    expect(replies.map((reply) => reply.headers.get('ratelimit-remaining'))).toEqual([
      '5',
      '4',
      '3',
      '2',
      '1',
      '0',
    ]);
    expect(replies.map((reply) => reply.headers.get('ratelimit-limit'))).toEqual(replies.map(() => '6'));
    for (const reply of replies) expect(reply.headers.get('ratelimit-reset')).toMatch(/^\d+$/);
    const refused = await client.usage();
    expectError(refused, 429, 'rate_limit_exceeded');
    expect(refused.headers.get('ratelimit-limit')).toBe('6');
    expect(refused.headers.get('ratelimit-remaining')).toBe('0');
    expect(refused.headers.get('ratelimit-reset')).toBe(refused.headers.get('retry-after'));
    // Health, documentation and requests without a key do not.
    expect((await readUsage(stage.client)).usage).toBeDefined();
  });

  test('[errors-7, decision-28] 429 | `rate_limit_exceeded` | Tenant request rate exceeded. rate limit is a sliding window: never more than N in any 60 s; `Retry-After` is when the next one fits', async () => {
    const server = await startPaced();
    const { client } = await createTenant(server, { requestsPerMinute: 3 });
    /** Sent at the earliest, answered at the latest. */
    const admit = async (): Promise<readonly [number, number]> => {
      const sentAt = server.nowMs();
      expect((await client.usage()).status).toBe(200);
      return [sentAt, server.nowMs()];
    };
    const [firstSentAt, firstAnsweredAt] = await admit();
    await server.wait();
    const [, secondAnsweredAt] = await admit();
    await admit();
    const reply = await client.usage();
    const now = server.nowMs();
    expectError(reply, 429, 'rate_limit_exceeded');
    const retryAfter = retryAfterOf(reply);
    // Between the earliest and the latest moment at which the first may have been counted.
    expect(retryAfter).toBeGreaterThanOrEqual(Math.ceil(60 - (now - firstSentAt) / 1000) - 1);
    expect(retryAfter).toBeLessThanOrEqual(Math.ceil(60 - (now - firstAnsweredAt) / 1000) + 1);
    // Not a second too early or too late, and refusals leave no trace.
    const fits = now + retryAfter * 1000;
    while (server.nowMs() < fits - 1500) {
      expect((await client.usage()).status).toBe(429);
      await pause(Math.min(3000, Math.max(1, fits - 1400 - server.nowMs())));
    }
    await pause(Math.max(0, fits - server.nowMs()));
    await admit();
    // The window slides: the second and third still count, so no fourth fits before they leave it.
    const next = await client.usage();
    expectError(next, 429, 'rate_limit_exceeded');
    const expected = 60 - (server.nowMs() - secondAnsweredAt) / 1000;
    expect(Math.abs(retryAfterOf(next) - expected)).toBeLessThanOrEqual(2);
    await server.stop();
  });
});

/** A server whose clock can be moved, and its time. In a cluster Redis has the clock, which nobody moves. */
async function startPaced(): Promise<ServerProcess & { wait(): Promise<void>; nowMs(): number }> {
  if (isClustered())
    return { ...(await startNodes({})), wait: () => pause(waitMs), nowMs: () => performance.now() };
  const server = await startServer({
    sharedEncoder: true,
    env: { NODE_OPTIONS: `--import=${movedClock}`, TEST_CLOCK_STEP_MS: String(waitMs) },
  });
  let movedMs = 0;
  return {
    ...server,
    async wait() {
      server.signal('SIGUSR2');
      await eventually(() => server.output().stdout.includes('moved'));
      movedMs += waitMs;
    },
    nowMs: () => performance.now() + movedMs,
  };
}
