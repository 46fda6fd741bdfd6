/** A client cannot make the server hold unbounded requests, answers, bodies or connections. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { bodyBytesMax, largeBodiesBytesMax } from '../../src/http/limits.ts';
import { parseResponse, startHttp, until } from '../support/http/http-server.ts';
import { exchange, listen, open } from '../support/http/sockets.ts';
import { calmestOf } from '../support/turns.ts';
import { authorization } from '../support/http/watched-service.ts';

const head = (line: string, ...headers: string[]) =>
  [`${line} HTTP/1.1`, 'Host: test', `Authorization: ${authorization}`, ...headers, '', ''].join('\r\n');

describe('pipelined requests', () => {
  test('are answered one at a time, in order, however many there are', async () => {
    await using http = await startHttp();
    const indexId = await http.createIndex();
    let running = 0;
    let runningMax = 0;
    http.service.before = async () => {
      runningMax = Math.max(runningMax, (running += 1));
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const requests = Array.from({ length: 600 }, (_, n) =>
      head(`GET /v1/indexes/${indexId}/documents/d${n}`, ...(n === 599 ? ['Connection: close'] : [])),
    );
    const answers = await exchange(await listen(http), requests.join(''));
    expect(answers.match(/HTTP\/1\.1 404 Not Found/g)).toHaveLength(600);
    const asked = http.service.calls.filter(({ name }) => name === 'getDocument');
    expect(asked.map((call) => call.arguments[1])).toEqual(requests.map((_, n) => `d${n}`));
    expect(runningMax).toBe(1);
  });

  test('may have bodies, also behind one that takes long', async () => {
    await using http = await startHttp();
    const hold = Promise.withResolvers<void>();
    http.service.before = () => hold.promise;
    const body = `{"query":"q","documents":[{"doc_id":"a","text":"${'t'.repeat(90_000)}"}]}`;
    const score = (...more: string[]) =>
      head('POST /v1/score', 'Content-Type: application/json', `Content-Length: ${body.length}`, ...more) +
      body;
    const answers = exchange(
      await listen(http),
      `${score()}${head('GET /v1/usage')}${score('Connection: close')}`,
    );
    await until(() => http.service.calls.length === 1);
    hold.resolve();
    expect((await answers).match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
    expect(http.service.calls.map(({ name }) => name)).toEqual(['score', 'usage', 'score']);
  });

  test('wait in a bounded number: the connection that passes it is closed, the others are answered', async () => {
    await using http = await startHttp();
    const port = await listen(http);
    const hold = Promise.withResolvers<void>();
    http.service.before = () => hold.promise;
    // As many requests as one read of 64 KiB brings.
    const many = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_700);
    const last = head('GET /healthz', 'Connection: close');
    const answers = [1, 2, 3].map(() => exchange(port, head('GET /v1/usage') + many + last));
    expect(await Promise.race(answers)).toBe('');
    hold.resolve();
    const counts = (await Promise.all(answers)).map((raw) => raw.split('HTTP/1.1 200 OK').length - 1);
    expect(counts.toSorted((a, b) => a - b)).toEqual([0, 1_702, 1_702]);
  });

  test('behind which bad bytes come are answered before those', async () => {
    await using http = await startHttp();
    const answers = await exchange(await listen(http), `${head('GET /v1/usage').repeat(3)}garbage\r\n\r\n`);
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([200, 200, 200, 400]);
  });
});

test('a client that does not take its answer is disconnected, and its slot is free', async () => {
  await using http = await startHttp({ timeouts: { answerMs: 200 } });
  const indexId = await http.createIndex();
  // More than the kernel's buffers hold.
  const large = {
    docId: 'a',
    chunkId: 'a',
    chunkIndex: 0,
    score: 1,
    normalizedScore: 0.5,
    metadata: `{"a":"${'x'.repeat(1 << 20)}"}`,
  };
  const usage = { inputTokens: 1, documentCount: 0, chunkCount: 1, candidateCount: 1, latencyMs: 1 };
  http.service.ranked = { results: Array.from({ length: 32 }, () => large), usage };
  const body = '{"query":"q"}';
  const port = await listen(http);
  await using socket = connect(port, '127.0.0.1').pause();
  socket.on('error', () => undefined);
  socket.write(
    head(
      `POST /v1/indexes/${indexId}/search`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ) + body,
  );
  await until(() => http.service.calls.length === 2 && http.service.permitsHeld === 0);
  expect(http.logLines.at(-1)).toMatchObject({ route: '/v1/indexes/:index_id/search', status: 499 });
});

describe('large bodies', () => {
  const length = bodyBytesMax;
  const upload = (path: string) =>
    head(`POST ${path}`, 'Content-Type: application/json', `Content-Length: ${length}`);

  test('of one tenant take half of the room at most; more wait unread, and in the end get 503', async () => {
    await using http = await startHttp({ timeouts: { bodyWaitMs: 500 } });
    const atOnce = Math.floor(largeBodiesBytesMax / 2 / length);
    const port = await listen(http);
    const hold = Promise.withResolvers<void>();
    http.service.before = () => hold.promise;
    const small = '{"query":"q","documents":[{"doc_id":"a","text":"t"}]}';
    const body = small + ' '.repeat(length - small.length);
    const send = () =>
      exchange(port, upload('/v1/score').replace('Host: test', 'Host: test\r\nConnection: close'), body);
    const answers = Array.from({ length: atOnce + 1 }, send);
    const statuses: number[] = [];
    for (const answer of answers) void answer.then((raw) => statuses.push(parseResponse(raw).status));
    await until(() => statuses.length > 0 && http.service.calls.length === atOnce);
    expect(statuses).toEqual([503]);
    const refused = await Promise.race(answers);
    expect(parseResponse(refused).headers['retry-after']).toMatch(/^[1-9]\d*$/);
    // Small ones do not wait.
    const quick = http.inject({ method: 'POST', url: '/v1/score', payload: small });
    await until(() => http.service.calls.length === atOnce + 1);
    hold.resolve();
    await quick;
    await Promise.all(answers);
    expect(statuses).toEqual([503, ...Array<number>(atOnce).fill(200)]);
    // Room comes back.
    expect(parseResponse(await send()).status).toBe(200);
  });

  test('that announce much and send little leave the room to others', async () => {
    await using http = await startHttp({ timeouts: { bodyWaitMs: 500 } });
    const port = await listen(http);
    // Four tenants with two each had all of it; here it is one tenant, whose share is less.
    const slow = await Promise.all(
      Array.from({ length: 8 }, () => open(port, upload('/v1/score') + ' '.repeat(70_000))),
    );
    await until(() => http.service.permitsHeld === slow.length);
    const body = '{"query":"q","documents":[{"doc_id":"a","text":"t"}]}'.padEnd(length);
    const raw = await exchange(
      port,
      upload('/v1/score').replace('Host: test', 'Host: test\r\nConnection: close'),
      body,
    );
    expect(parseResponse(raw).status).toBe(200);
    for (const socket of slow) socket.destroy();
  });

  test('in chunks of one byte are read slowly, and hold the event loop never for long', async () => {
    await using http = await startHttp({ timeouts: { searchMs: 100_000 } });
    const port = await listen(http);
    const body = '{"query":"q","documents":[{"doc_id":"a","text":"t"}]}'.padEnd(60_000);
    const chunks = body.replaceAll(/./g, '1\r\n$&\r\n');
    const chunked = head(
      'POST /v1/score',
      'Connection: close',
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    );
    const startedAt = performance.now();
    const { result, longestMs } = await calmestOf(4, () =>
      Promise.all([1, 2].map(() => exchange(port, chunked, `${chunks}0\r\n\r\n`))),
    );
    expect(result.map((raw) => parseResponse(raw).status)).toEqual([200, 200]);
    expect(longestMs).toBeLessThan(100);
    // All but what a read brings is paid for before the next: a hundredth of a millisecond each.
    expect(performance.now() - startedAt).toBeGreaterThan(4 * 800);
  });

  test('are not read before their request is admitted, but for what came with the header', async () => {
    await using http = await startHttp();
    const port = await listen(http);
    const admitting = Promise.withResolvers<void>();
    const admitted = Promise.withResolvers<void>();
    const admit = http.service.admit.bind(http.service);
    http.service.admit = async (...given) => {
      admitting.resolve();
      await admitted.promise;
      return admit(...given);
    };
    let served: Socket | undefined;
    http.app.server.once('connection', (socket: Socket) => (served = socket));
    const body = '{"query":"q","documents":[{"doc_id":"a","text":"t"}]}'.padEnd(60_000);
    const chunked = ['Content-Type: application/json', 'Transfer-Encoding: chunked', 'Connection: close'];
    const answer = exchange(
      port,
      head('POST /v1/score', ...chunked),
      `${body.replaceAll(/./g, '1\r\n$&\r\n')}0\r\n\r\n`,
    );
    await admitting.promise;
    for (let turns = 0; turns < 200; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    const bytesRead = served?.bytesRead;
    admitted.resolve();
    expect(parseResponse(await answer).status).toBe(200);
    // A read brings 64 KiB at most. With chunks of one byte Node reads six times as much of its own accord.
    expect(bytesRead).toBeLessThanOrEqual(2 * 65_536);
  });

  test('are not waited for where nobody is admitted', async () => {
    await using http = await startHttp();
    await using socket = await open(await listen(http), upload('/nothing'));
    const [answer] = (await once(socket.setEncoding('utf8'), 'data')) as [string];
    expect(parseResponse(answer).status).toBe(404);
  });
});

test('connections beyond the bound are closed at once, and counted', async () => {
  await using http = await startHttp({ connectionsMax: 2 });
  const port = await listen(http);
  const first = await open(port, '');
  await using _second = await open(port, '');
  expect(await exchange(port, head('GET /healthz', 'Connection: close'))).toBe('');
  expect(await http.metrics.render()).toMatch(/^maxsimd_http_connections_refused_total 1$/m);
  first.destroy();
  await expect
    .poll(() => exchange(port, head('GET /healthz', 'Connection: close')))
    .toMatch(/^HTTP\/1\.1 200 /);
});
