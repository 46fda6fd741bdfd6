/** `Content-Encoding: gzip` (RFC 9110 section 8.4.1.3). */
import { createGzip, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bodyBytesMax } from '../../../src/http/limits.ts';
import { startHttp, type Harness } from '../../support/http/http-server.ts';
import { calmestOf } from '../../support/turns.ts';

const body = '{"query":"q","documents":[{"doc_id":"a","text":"t"}]}';
const padded = (bytes: number) => body + ' '.repeat(bytes - body.length);

let http: Harness;
beforeAll(async () => {
  http = await startHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

const score = (payload: Buffer, encoding = 'gzip') =>
  http.inject({
    method: 'POST',
    url: '/v1/score',
    headers: { 'content-type': 'application/json', 'content-encoding': encoding },
    payload,
  });

const blanks = Buffer.alloc(1 << 20, 32);

describe('a body in gzip', () => {
  it.each<[string, Buffer]>([
    ['small', gzipSync(body)],
    ['of the largest size', gzipSync(padded(bodyBytesMax))],
    ['that does not compress', gzipSync(padded(100_000), { level: 0 })],
    ['of two members', Buffer.concat([gzipSync(body.slice(0, 20)), gzipSync(body.slice(20))])],
  ])('%s is read', async (_, payload) => {
    http.service.calls.length = 0;
    expect((await score(payload)).statusCode).toBe(200);
    expect(http.service.calls[0]?.arguments[0]).toMatchObject({ query: 'q' });
  });

  it.each(['gzip', 'GZip', 'x-gzip'])('may be named %s', async (encoding) => {
    expect((await score(gzipSync(body), encoding)).statusCode).toBe(200);
  });

  it.each<[string, Buffer]>([
    ['cut off', gzipSync(body).subarray(0, -3)],
    ['with bytes behind it', Buffer.concat([gzipSync(body), Buffer.from('more')])],
    ['with zeros behind it', Buffer.concat([gzipSync(body), Buffer.alloc(8)])],
    ['that is none', Buffer.from(body)],
    ['with a wrong checksum', Buffer.concat([gzipSync(body).subarray(0, -8), Buffer.alloc(8)])],
  ])('%s is a 422', async (_, payload) => {
    const answer = await score(payload);
    expect(answer.statusCode).toBe(422);
    expect(answer.json()).toMatchObject({
      error: { code: 'validation_error', issues: [{ path: '', code: 'malformed_gzip' }] },
    });
  });

  it('that inflates beyond the bound is a 413 before it is inflated', async () => {
    // In pieces: to free half a gigabyte at once would take the turn that is measured.
    const gzip = createGzip();
    for (let mebibyte = 0; mebibyte < 512; mebibyte += 1) gzip.write(blanks);
    gzip.end();
    const bomb = Buffer.concat(await gzip.toArray());
    expect(bomb.length).toBeLessThan(bodyBytesMax);
    const before = process.memoryUsage().rss;
    const { result, longestMs } = await calmestOf(4, () => score(bomb));
    expect(result.statusCode).toBe(413);
    expect(longestMs).toBeLessThan(50);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 << 20);
    expect((await score(gzipSync(padded(bodyBytesMax + 1)))).statusCode).toBe(413);
  });

  it('counts as none where it is empty', async () => {
    const answer = await http.inject({
      method: 'DELETE',
      url: `/v1/indexes/${await http.createIndex()}`,
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    });
    expect(answer.statusCode).toBe(200);
  });
});

it.each(['br', 'deflate', 'zstd', 'gzip, gzip', 'nonsense'])('the encoding %s is a 415', async (encoding) => {
  const answer = await score(gzipSync(body), encoding);
  expect(answer.statusCode).toBe(415);
  expect(answer.headers['accept-encoding']).toBe('gzip');
});

it('the encoding identity is none', async () => {
  expect((await score(Buffer.from(body), 'identity')).statusCode).toBe(200);
});
