/** "Conventions that apply to every endpoint", the duties of clients shown by our own command line. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { makeCertificate, requestOverTls } from '../../../support/network/tls.ts';
import { call, type Reply } from '../../../support/running/client.ts';
import type { Finished } from '../../../support/commands/command-here.ts';
import { createTenant, runCommand } from '../../../support/commands/command-line.ts';
import { startProxy } from '../../../support/network/proxy.ts';
import { openRaw } from '../../../support/network/raw-http.ts';
import { makeScratch } from '../../../support/running/launch.ts';
import { startServer } from '../../../support/running/server.ts';
import { useStage } from '../../../support/running/stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { passages } from '../../../support/running/texts.ts';
import { decimalString } from '../../../support/running/wire.ts';

const stage = useStage({ sharedEncoder: true });

/** One reply of every kind: successes, client errors of every status, the health endpoints. */
async function everyKindOfReply(): Promise<readonly Reply[]> {
  const { client, server } = stage;
  const { id } = await makeIndex(client);
  const absent = '00000000-0000-4000-8000-000000000000';
  return [
    await call(`${server.url}/healthz`),
    await call(`${server.url}/readyz`),
    await call(`${server.url}/openapi.json`),
    await call(`${server.url}/nowhere`),
    await call(`${server.url}/v1/indexes`),
    await call(`${server.url}/v1/indexes`, { key: 'qkv_live_wrong' }),
    await client.listIndexes(),
    await client.upsert(id, [{ doc_id: 'one', text: 'river stone' }]),
    await client.search(id, { query: 'river' }),
    await client.score({ query: 'river', documents: [{ doc_id: 'one', text: 'stone' }] }),
    await client.deleteDocument(id, 'one'),
    await client.usage(),
    await client.createIndex({}),
    await client.search(absent, { query: 'river' }),
    await client.search('not-a-uuid', { query: 'river' }),
    await client.send('POST', '/v1/score', { rawBody: '{"query":' }),
    await client.send('POST', '/v1/score', { rawBody: 'river', headers: { 'content-type': 'text/plain' } }),
    await client.send('POST', '/v1/score', { rawBody: ' '.repeat(6 * 1024 * 1024) }),
  ];
}

describe('Conventions', () => {
  test('[conventions-2] Every response carries the header `x-request-id` (non-empty string, a correlation id for logging and support, not a credential).', async () => {
    const replies = await everyKindOfReply();
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200, 401, 404, 413, 415, 422]));
    const ids = replies.map((reply) => reply.headers.get('x-request-id'));
    for (const id of ids) expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(new Set(ids).size).toBe(ids.length);
    // Not a credential: it opens nothing.
    const reply = await call(`${stage.server.url}/v1/usage`, { key: ids[0] ?? '' });
    expect(reply.status).toBe(401);
  });

  test('[decision-37] request ids are ours, ULID; a client’s `x-request-id` is accepted if it matches `[A-Za-z0-9._-]{1,128}`', async () => {
    const { client } = stage;
    const sent = async (id: string): Promise<string | null> =>
      (await client.send('GET', '/v1/usage', { headers: { 'x-request-id': id } })).headers.get(
        'x-request-id',
      );
    for (const accepted of ['a', 'order-17.retry_2', 'x'.repeat(128)]) {
      expect(await sent(accepted)).toBe(accepted);
    }
    for (const refused of ['x'.repeat(129), 'two words', 'semi;colon', '{"json":1}', 'a/b']) {
      expect(await sent(refused)).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
    }
  });

  test('the correlation id stands in the log of the request, for logging and support', async () => {
    await stage.client.send('GET', '/v1/usage', { headers: { 'x-request-id': 'find-me-in-the-log' } });
    await expect.poll(() => stage.server.output().stderr).toContain('find-me-in-the-log');
  });

  test('[conventions-5] Token totals in the usage summary are decimal strings (to avoid integer precision loss); clients calculate with arbitrary-precision integers.', async () => {
    // 2^53 + 1 is the first integer that a JSON number loses.
    const allowance = 9_007_199_254_740_993n;
    const tenant = await stage.newTenant({ inputTokens: allowance });
    const { id } = await makeIndex(tenant.client);
    await put(tenant.client, id, [{ doc_id: 'one', text: 'river' }]);
    const { usage, limits, remaining } = await readUsage(tenant.client);
    for (const total of [usage.input_tokens, limits.input_tokens, remaining.input_tokens]) {
      expect(total).toBe(decimalString.parse(total));
    }
    expect(BigInt(limits.input_tokens)).toBe(allowance);
    expect(BigInt(remaining.input_tokens)).toBe(allowance - 1n);
  });

  test('[conventions-6] Scores only order results within one response. They have no fixed global range.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(
      client,
      id,
      passages.slice(0, 12).map((passage) => ({ doc_id: passage.subject, text: passage.text })),
    );
    const best = async (query: string): Promise<number> => {
      const scores = (await find(client, id, { query })).results.map((result) => result.score);
      expect(scores).toEqual(scores.toSorted((left, right) => right - left));
      return scores[0] ?? Number.NaN;
    };
    // A sum over query tokens: the longer query's best is far above the shorter one's.
    expect(await best('glacier ice under the weight of later winters')).toBeGreaterThan(
      2 * (await best('ice')),
    );
  });
});

describe('Our own command line as a client', () => {
  test('[conventions-3] Clients must not log API keys, query text, document text or whole request bodies.', async () => {
    const { client, tenant, server } = stage;
    const { name } = await makeIndex(client);
    const attempts = [
      { key: `${tenant.key}x`, query: 'zebrafinch orchestra', index: name },
      { key: tenant.key, query: 'zebrafinch orchestra', index: 'no such index' },
      { key: tenant.key, query: 'zebrafinch orchestra '.repeat(400), index: name },
    ];
    for (const { key, query, index } of attempts) {
      const env = { MAXSIMD_URL: server.url, MAXSIMD_API_KEY: key };
      const result = await runCommand(['search', query, '--index', index], env);
      expect(result.exitCode).not.toBe(0);
      const output = result.stdout + result.stderr;
      expect(output).not.toContain('zebrafinch');
      expect(output).not.toContain(tenant.key.slice(9, 40));
    }
  });

  test('[conventions-7] Clients ignore unknown response fields.', async () => {
    const { client, tenant, server } = stage;
    const { id, name } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'the one', text: 'river stone' }]);
    const proxy = await startProxy(server.url, {
      onReply: (_address, body) =>
        JSON.stringify({ ...(JSON.parse(body) as object), of_the_future: { a: [1] } }),
    });
    try {
      const result = await runCommand(['search', 'river stone', '--index', name, '--json'], {
        MAXSIMD_URL: proxy.url,
        MAXSIMD_API_KEY: tenant.key,
      });
      expect(result).toMatchObject({ exitCode: 0 });
      expect(result.stdout).toContain('the one');
    } finally {
      await proxy.close();
    }
  });
});

describe('Our own command line at a limit', () => {
  let directory = '';
  let file = '';

  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-e2e-'));
    file = path.join(directory, 'documents.jsonl');
    const lines = passages.map((passage) => JSON.stringify({ doc_id: passage.subject, text: passage.text }));
    await writeFile(file, lines.join('\n'));
  });

  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** Imports through a proxy that refuses upserts with `refusals`, one after another, before it lets them pass. */
  async function importRefused(refusals: readonly { code: string; retryAfter: string }[]): Promise<{
    readonly result: Finished;
    /** When each upsert arrived, in milliseconds. */
    readonly arrivals: readonly number[];
  }> {
    const { name } = await makeIndex(stage.client);
    const arrivals: number[] = [];
    const proxy = await startProxy(stage.server.url, {
      onRequest: (address) => {
        if (!address.endsWith('/documents')) return undefined;
        const refusal = refusals[arrivals.length];
        arrivals.push(performance.now());
        if (refusal === undefined) return undefined;
        const headers = {
          'content-type': 'application/json',
          'x-request-id': 'x',
          'retry-after': refusal.retryAfter,
        };
        return {
          status: 429,
          headers,
          body: JSON.stringify({ error: { code: refusal.code, message: 'limited' } }),
        };
      },
    });
    try {
      const args = ['import', file, '--index', name, '--concurrency', '1', '--json'];
      const env = { MAXSIMD_URL: proxy.url, MAXSIMD_API_KEY: stage.tenant.key };
      return { result: await runCommand(args, env), arrivals };
    } finally {
      await proxy.close();
    }
  }

  test('[errors-13] Clients inspect `error.code` and honor it.', async () => {
    const { result, arrivals } = await importRefused([
      { code: 'rate_limit_exceeded', retryAfter: '2' },
      { code: 'concurrency_limit_exceeded', retryAfter: '1' },
    ]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(result.stdout)).toMatchObject({ done: passages.length, failed: 0 });
    const [first = 0, second = 0, third = 0] = arrivals;
    expect(second - first).toBeGreaterThanOrEqual(2000);
    expect(third - second).toBeGreaterThanOrEqual(1000);
  });

  test('[errors-15] For `usage_limit_exceeded`, clients stop retrying until the monthly usage period resets.', async () => {
    const refusal = { code: 'usage_limit_exceeded', retryAfter: '864000' };
    const { result, arrivals } = await importRefused(Array.from({ length: 10 }, () => refusal));
    expect(result.exitCode).not.toBe(0);
    expect(result.stdout + result.stderr).toContain('usage_limit_exceeded');
    expect(arrivals).toHaveLength(1);
  });
});

describe('All bodies are JSON over HTTPS', () => {
  test('[conventions-1] The base address is `{base_url}`. All bodies are JSON over HTTPS.', async () => {
    const scratch = await makeScratch();
    const { certificateFile, keyFile, certificate } = await makeCertificate(scratch.root);
    const server = await startServer({
      sharedEncoder: true,
      scratch,
      env: { MAXSIMD_TLS_FILES: `${certificateFile},${keyFile}` },
    });
    try {
      expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
      const { key } = await createTenant(server);
      const reply = await requestOverTls(`${server.url}/v1/usage`, certificate, key);
      expect(reply.status).toBe(200);
      expect(reply.headers['content-type']).toMatch(/^application\/json\b/);
      expect(JSON.parse(reply.body)).toHaveProperty('usage');
      // Plain HTTP on that port gets no answer of the service.
      const plain = await openRaw(server.url);
      plain.write(`GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      await expect(plain.reply()).rejects.toThrow(/closed|reset/i);
    } finally {
      await server.stop();
      await scratch.remove();
    }
  });
});
