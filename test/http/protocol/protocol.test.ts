import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseResponse, startHttp, until } from '../../support/http/http-server.ts';
import { exchange, listen } from '../../support/http/sockets.ts';
import type { Harness, RawResponse } from '../../support/http/http-server.ts';
import { authorization } from '../../support/http/watched-service.ts';

let http: Harness;
let port: number;
let indexId: string;

beforeAll(async () => {
  http = await startHttp({ timeouts: { headersMs: 300, bodyMs: 300, checkMs: 50 } });
  indexId = await http.createIndex();
  port = await listen(http);
});
afterAll(() => http[Symbol.asyncDispose]());

const head = (line: string, ...headers: string[]) =>
  [`${line} HTTP/1.1`, 'Host: test', `Authorization: ${authorization}`, ...headers, '', ''].join('\r\n');
const closing = (line: string, ...headers: string[]) => head(line, ...headers, 'Connection: close');

function expectError(response: RawResponse, status: number, code = 'validation_error'): void {
  expect(response.status).toBe(status);
  expect(response.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(Object.keys(JSON.parse(response.body))).toEqual(['error']);
  expect(JSON.parse(response.body)).toMatchObject({ error: { code, message: expect.any(String) } });
}

const send = async (...pieces: string[]) => parseResponse(await exchange(port, ...pieces));

describe('what the HTTP parser refuses has our body and a request id', () => {
  test.each([
    ['garbage', 'garbage\r\n\r\n'],
    ['an unknown method', 'FROB / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an unknown version', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['a bad header', 'GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a missing Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['two Hosts', 'GET /healthz HTTP/1.1\r\nHost: x\r\nhost: y\r\nConnection: close\r\n\r\n'],
    ['the same Host twice', 'GET /healthz HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n'],
    ['a path that does not decode', 'GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('%s: 400', async (_name, bytes) => {
    expectError(await send(bytes), 400);
  });

  test('an expectation other than 100-continue: 417', async () => {
    expectError(await send(closing('POST /v1/score', 'Expect: miracles', 'Content-Length: 2')), 417);
  });

  test('a body that never ends: 408 to that request, and counted', async () => {
    const before = http.service.counted.length;
    const given = ['Content-Type: application/json', 'Content-Length: 100', 'X-Request-Id: slow-1'];
    const response = await send(head('POST /v1/score', ...given), '{"query":');
    expectError(response, 408);
    expect(response.headers).toMatchObject({ 'x-request-id': 'slow-1', connection: 'close' });
    expect(http.service.counted).toHaveLength(before + 1);
  });

  test('a malformed chunk: 400 to that request', async () => {
    const given = ['Content-Type: application/json', 'Transfer-Encoding: chunked', 'X-Request-Id: chunk-1'];
    const response = await send(head('POST /v1/score', ...given), 'zz\r\n{}\r\n');
    expectError(response, 400);
    expect(response.headers['x-request-id']).toBe('chunk-1');
    await until(() => http.service.permitsHeld === 0);
  });

  test('garbage behind a request: its answer first, then a 400', async () => {
    const raw = await exchange(port, `${head('GET /v1/usage')}garbage\r\n\r\n`);
    const second = raw.lastIndexOf('HTTP/1.1 ');
    expect(raw.slice(0, second)).toMatch(/^HTTP\/1\.1 200 [^]*"period_start"/);
    expectError(parseResponse(raw.slice(second)), 400);
  });
});

describe('routing over a socket', () => {
  test('"." and ".." in a path are refused: they cannot be addressed', async () => {
    for (const id of ['.', '..', '%2E', '%2e%2e']) {
      const response = await send(closing(`DELETE /v1/indexes/${indexId}/documents/${id}`));
      expectError(response, 422);
      expect(JSON.parse(response.body)).toMatchObject({
        error: { issues: [{ path: 'doc_id', code: 'reserved' }] },
      });
    }
  });

  test('every other method of a known address is a 404 with our body', async () => {
    for (const method of [
      'PUT',
      'PATCH',
      'OPTIONS',
      'TRACE',
      'PROPFIND',
      'SEARCH',
      'M-SEARCH',
      'PURGE',
      'QUERY',
    ]) {
      const response = await send(closing(`${method} /v1/usage`));
      expect([method, response.status]).toEqual([method, 404]);
      expectError(response, 404, 'not_found');
    }
  });

  test('an upgrade is not taken', async () => {
    const response = await send(head('GET /v1/usage', 'Connection: Upgrade, close', 'Upgrade: websocket'));
    expect(response.status).toBe(200);
  });

  test('HEAD has the headers of GET and no body, also when it fails', async () => {
    const ok = await send(closing('HEAD /v1/usage'));
    expect([ok.status, ok.body]).toEqual([200, '']);
    expect(ok.headers['x-request-id']).toBeTruthy();
    const missing = await send(closing('HEAD /v1/nothing'));
    expect([missing.status, missing.body]).toEqual([404, '']);
    expect(missing.headers['x-request-id']).toBeTruthy();
    const refused = await send('HEAD /v1/usage HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect([refused.status, refused.body]).toEqual([401, '']);
  });
});

describe('bodies over a socket', () => {
  const json = 'Content-Type: application/json';

  test('a refused request never sends the body it asks to continue with', async () => {
    const refused = await exchange(
      port,
      [
        'POST /v1/score HTTP/1.1',
        'Host: x',
        json,
        'Expect: 100-continue',
        'Content-Length: 9',
        'Connection: close',
        '',
        '',
      ].join('\r\n'),
    );
    expect(refused).toMatch(/^HTTP\/1\.1 401 /);
    const tooLarge = await exchange(
      port,
      closing('POST /v1/score', json, 'Expect: 100-continue', 'Content-Length: 9999999'),
    );
    expect(tooLarge).toMatch(/^HTTP\/1\.1 413 /);
  });

  test('an admitted one is asked to continue', async () => {
    const body = '{"query":"q","documents":[{"doc_id":"a","text":"t"}]}';
    const raw = await exchange(
      port,
      closing('POST /v1/score', json, 'Expect: 100-continue', `Content-Length: ${body.length}`),
      body,
    );
    expect(raw).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  });

  test('a refused body of 256 KiB is thrown away, and the connection serves the next request', async () => {
    const bytes = 256 * 1024;
    const raw = await exchange(
      port,
      head('POST /v1/score', 'Content-Type: text/plain', `Content-Length: ${bytes}`),
      'x'.repeat(bytes),
      closing('GET /v1/usage'),
    );
    expect(raw).toMatch(/^HTTP\/1\.1 415 [^]*HTTP\/1\.1 200 [^]*"period_start"/);
  });

  test.each([
    ['a declared one', '/v1/score', 415, `Content-Length: ${16 << 20}`, ''],
    ['a chunked one', '/v1/score', 415, 'Transfer-Encoding: chunked', '1000000\r\n'],
    ['one to no address', '/%zz', 400, `Content-Length: ${16 << 20}`, ''],
    ['one that expects something', '/v1/score', 417, `Expect: miracles\r\nContent-Length: ${16 << 20}`, ''],
    ['one that is no HTTP', '/v1/score', 400, 'Transfer-Encoding: chunked', '1000000 \r\n'],
  ])('%s that is longer is not read', async (_name, path, status, header, before) => {
    // With the times of a server, whatever else the machine does.
    await using patient = await startHttp();
    const patientPort = await listen(patient);
    const connected = once(patient.app.server, 'connection') as Promise<[Socket]>;
    const client = connect(patientPort, '127.0.0.1');
    const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
    client.on('error', () => {});
    client.write(head(`POST ${path}`, 'Content-Type: text/plain', header) + before);
    client.write(Buffer.alloc(16 << 20, 'x'));
    const [server, answer] = await Promise.all([
      connected.then(async ([socket]) => {
        await once(socket, 'close');
        return { bytesRead: socket.bytesRead, closedAt: performance.now() };
      }),
      once(client, 'data').then(([bytes]) => ({ bytes: String(bytes), cameAt: performance.now() })),
      closed,
    ]);
    const response = parseResponse(answer.bytes);
    expectError(response, status);
    expect(response.headers['connection']).toBe('close');
    expect(server.bytesRead).toBeLessThan(1 << 20);
    // Time to read the answer before the connection is reset.
    expect(server.closedAt - answer.cameAt).toBeGreaterThan(400);
  });

  test('fetch, in the middle of sending, gets the answer', async () => {
    await using patient = await startHttp();
    const answer = await fetch(`http://127.0.0.1:${await listen(patient)}/v1/score`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'text/plain' },
      body: 'x'.repeat(5 << 20),
    });
    expect(answer.status).toBe(415);
    expect(await answer.json()).toMatchObject({ error: { code: 'validation_error' } });
  });

  test('malformed JSON does not cost the connection', async () => {
    const raw = await exchange(
      port,
      head('POST /v1/score', json, 'Content-Length: 1'),
      '{',
      closing('GET /v1/usage'),
    );
    expect(raw).toMatch(/^HTTP\/1\.1 422 [^]*HTTP\/1\.1 200 /);
  });
});

test('with a certificate the same is served over TLS, and only there', async () => {
  const fixture = (name: string) => readFileSync(new URL(`fixtures/${name}`, import.meta.url));
  const cert = fixture('test-only-cert.pem');
  await using secure = await startHttp({ tls: { cert, key: fixture('test-only-key.pem') } });
  const securePort = await listen(secure);
  const answer = await new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: securePort, path: '/healthz', ca: cert }, (response) => {
      response.resume();
      resolve([response.statusCode, typeof response.headers['x-request-id']]);
    }).on('error', reject);
  });
  expect(answer).toEqual([200, 'string']);
  expect(await exchange(securePort, head('GET /healthz'))).not.toContain('HTTP/1.1 200');
});

test('under the name localhost there is one listener, with the same answers', async () => {
  await using local = await startHttp();
  await local.app.listen({ host: 'localhost', port: 0 });
  expect(local.app.addresses()).toHaveLength(1);
});
