import { once } from 'node:events';
import { Agent, get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { parseResponse, startHttp, until } from '../support/http/http-server.ts';
import { exchange, listen, open } from '../support/http/sockets.ts';
import { authorization } from '../support/http/watched-service.ts';

const body = '{"query":"q","documents":[{"doc_id":"a","text":"t"}]}';
const head = (line: string, ...headers: string[]) =>
  [`${line} HTTP/1.1`, 'Host: test', `Authorization: ${authorization}`, ...headers, '', ''].join('\r\n');
const scoreRequest = `${head('POST /v1/score', 'Content-Type: application/json', `Content-Length: ${body.length}`)}${body}`;

describe('a request in hand', () => {
  test('knows its tenant, its id and a deadline counted from its arrival', async () => {
    await using http = await startHttp({ timeouts: { searchMs: 1_000, upsertMs: 60_000 } });
    const id = await http.createIndex();
    const timeoutOf = async (url: string, payload: object) => {
      await http.inject({ method: 'POST', url, payload, headers: { 'x-request-id': 'r1' } });
      const { context } = http.service.calls.at(-1)!;
      expect(context).toMatchObject({ requestId: 'r1', tenant: { id: 'tenant-1' } });
      expect(context.signal.aborted).toBe(false);
      return context.deadlineMs - context.startedAtMs;
    };
    const documents = [{ doc_id: 'a', text: 't' }];
    expect(await timeoutOf(`/v1/indexes/${id}/documents`, { documents })).toBe(60_000);
    expect(await timeoutOf(`/v1/indexes/${id}/search`, { query: 'q' })).toBe(1_000);
    expect(await timeoutOf('/v1/score', { query: 'q', documents })).toBe(1_000);
  });

  test('gives its slot back once answered, whatever the answer', async () => {
    await using http = await startHttp();
    const id = await http.createIndex();
    for (const url of [`/v1/indexes/${id}`, '/v1/indexes/x', '/v1/unknown']) await http.inject({ url });
    await http.inject({ method: 'POST', url: '/v1/score', payload: '{' });
    http.service.before = () => {
      throw new Error('x');
    };
    await http.inject({ url: '/v1/usage' });
    await until(() => http.service.permitsHeld === 0);
    expect(http.service.calls.length).toBeGreaterThan(0);
  });

  test('is aborted when its client leaves, and keeps its slot until its work has ended', async () => {
    await using http = await startHttp();
    const work = Promise.withResolvers<void>();
    const started = Promise.withResolvers<AbortSignal>();
    http.service.before = async ({ signal }) => {
      started.resolve(signal);
      await work.promise;
    };
    const socket = await open(await listen(http), scoreRequest);
    const signal = await started.promise;
    expect(signal.aborted).toBe(false);
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    socket.destroy();
    await aborted;
    await until(() => http.logLines.length > 0);
    expect(http.service.permitsHeld).toBe(1);
    work.resolve();
    await until(() => http.service.permitsHeld === 0);
    expect(http.service.counted).toHaveLength(0);
    expect(http.service.left).toHaveLength(1);
    expect(http.logLines).toMatchObject([{ route: '/v1/score', status: 499, tenant_id: 'tenant-1' }]);
  });

  test('whose client leaves while sending gives its slot back and starts no work', async () => {
    await using http = await startHttp();
    const socket = await open(await listen(http), scoreRequest.slice(0, -5));
    await until(() => http.service.permitsHeld === 1);
    socket.destroy();
    await until(() => http.service.permitsHeld === 0);
    await until(() => http.logLines.length > 0);
    expect(http.service.calls).toHaveLength(0);
    expect(http.logLines).toMatchObject([{ route: '/v1/score', status: 400 }]);
  });

  test('whose client leaves during admission gives its slot back and starts no work', async () => {
    await using http = await startHttp();
    const admit = http.service.admit.bind(http.service);
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    http.service.admit = async (header) => {
      asked.resolve();
      await gate.promise;
      return admit(header);
    };
    const socket = await open(await listen(http), scoreRequest);
    await asked.promise;
    socket.destroy();
    await until(() => http.logLines.length > 0);
    gate.resolve();
    const admitted = Promise.withResolvers<void>();
    setImmediate(() => setImmediate(admitted.resolve));
    await admitted.promise;
    await until(() => http.service.permitsHeld === 0);
    expect(http.service.calls).toHaveLength(0);
  });

  test('has given its slot back when its client sends the next one', async () => {
    await using http = await startHttp();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const port = await listen(http);
    const held: number[] = [];
    http.service.before = () => void held.push(http.service.permitsHeld);
    for (let sent = 0; sent < 50; sent += 1) {
      const [response] = (await once(
        get({ port, path: '/v1/usage', agent, headers: { authorization } }),
        'response',
      )) as [IncomingMessage];
      await once(response.resume(), 'end');
    }
    agent.destroy();
    expect(held).toEqual(Array.from({ length: 50 }, () => 1));
  });
});

describe('draining', () => {
  test('refuses what is new, stays alive, reports itself unready, and finishes what is in hand', async () => {
    const drain = new AbortController();
    await using http = await startHttp({ drain: drain.signal });
    const port = await listen(http);
    const work = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    http.service.before = async () => {
      started.resolve();
      await work.promise;
    };
    const answer = exchange(port, scoreRequest);
    await started.promise;
    drain.abort();

    const refused = parseResponse(await exchange(port, head('GET /v1/usage')));
    expect(refused).toMatchObject({
      status: 503,
      headers: { connection: 'close', 'retry-after': '1', 'x-request-id': expect.any(String) },
    });
    expect(JSON.parse(refused.body)).toMatchObject({ error: { code: 'service_unavailable' } });
    expect(parseResponse(await exchange(port, head('GET /healthz')))).toMatchObject({
      status: 200,
      headers: { connection: 'close' },
    });
    const unready = parseResponse(await exchange(port, head('GET /readyz')));
    expect(unready.status).toBe(503);
    expect(JSON.parse(unready.body)).toMatchObject({
      error: { code: 'service_unavailable', issues: [{ path: 'draining', message: 'shutting down' }] },
    });

    const closed = http.app.close();
    work.resolve();
    expect(parseResponse(await answer)).toMatchObject({ status: 200, headers: { connection: 'close' } });
    await closed;
    expect(http.service.permitsHeld).toBe(0);
  });

  test('closing drains by itself', async () => {
    await using http = await startHttp();
    const port = await listen(http);
    const work = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    http.service.before = async () => {
      started.resolve();
      await work.promise;
    };
    const socket = await open(port, scoreRequest);
    let received = '';
    socket.on('data', (piece) => (received += String(piece)));
    await started.promise;
    const gone = new Promise((resolve) => socket.once('close', resolve));
    const closed = http.app.close();
    work.resolve();
    await Promise.all([closed, gone]);
    expect(received).toMatch(/^HTTP\/1\.1 200 /);
  });
});

test('health needs no key; readiness names what is wrong', async () => {
  await using http = await startHttp();
  expect((await http.app.inject({ url: '/healthz' })).json()).toEqual({ status: 'ok' });
  const ready = await http.app.inject({ url: '/readyz' });
  expect([ready.statusCode, ready.json()]).toEqual([
    200,
    { status: 'ready', checks: { catalog: 'ok', encoder: 'ok', disk: 'ok', draining: 'ok' } },
  ]);
  const checks = { catalog: 'ok', encoder: 'no encoder is up', disk: 'ok', draining: 'ok' };
  http.service.readiness = async () => ({ ready: false, checks });
  const unready = await http.app.inject({ url: '/readyz' });
  expect([unready.statusCode, unready.json()]).toEqual([
    503,
    {
      error: {
        code: 'service_unavailable',
        message: 'not ready',
        issues: [{ path: 'encoder', message: 'no encoder is up', code: 'unready' }],
      },
    },
  ]);
});

test('a service that is shut reports it with Retry-After', async () => {
  await using http = await startHttp();
  http.service.admitFailure = new ServiceError('service_unavailable', 'queue full', {
    retryAfterSeconds: 2.1,
  });
  const response = await http.inject({ url: '/v1/usage' });
  expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '3']);
});
