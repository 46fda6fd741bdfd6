import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SearchRequest } from '../../src/service/contract.ts';
import { startHttp } from './harness.ts';
import type { Harness } from './harness.ts';

let http: Harness;
beforeAll(async () => {
  http = await startHttp();
});
afterAll(() => http.app.close());

/** Scores one document with this metadata (as JSON text) and returns the answer's text and status. */
async function roundTrip(metadata: string) {
  const payload = `{"query":"q","documents":[{"doc_id":"a","text":"t","metadata":${metadata}}]}`;
  const response = await http.inject({ method: 'POST', url: '/v1/score', payload });
  return { status: response.statusCode, body: response.body, issues: response.json().error?.issues };
}

async function expectReturned(metadata: string): Promise<void> {
  const { status, body } = await roundTrip(metadata);
  expect(status).toBe(200);
  expect(body).toContain(`"metadata":${metadata}}`);
}

describe('metadata', () => {
  test('keys that mean something to JavaScript are data', async () => {
    await expectReturned('{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}},"toString":null}');
    await expectReturned('{"a":{"__proto__":[{"__proto__":1}]},"hasOwnProperty":"x","":"empty"}');
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  test('integers beyond 2^53 keep their digits, other numbers are doubles', async () => {
    await expectReturned('{"id":12345678901234567890,"ns":[1763725871000000001],"n":-9007199254740993}');
    const { body } = await roundTrip('{"one":1.0,"third":0.30000000000000004,"big":1e300,"zero":-0}');
    expect(body).toContain('"metadata":{"one":1,"third":0.30000000000000004,"big":1e+300,"zero":0}');
  });

  test('a number beyond a double is refused rather than returned as null', async () => {
    expect(await roundTrip('{"n":1e400}')).toMatchObject({
      status: 422,
      issues: [{ path: 'documents.0.metadata', code: 'out_of_range' }],
    });
  });

  test('is an object, nothing else', async () => {
    for (const metadata of ['[]', 'null', '"x"', '1', 'true']) {
      expect(await roundTrip(metadata)).toMatchObject({
        status: 422,
        issues: [{ path: 'documents.0.metadata', code: 'invalid_type' }],
      });
    }
  });

  test('16 KiB serialised pass, one byte more does not; white space does not count', async () => {
    const filled = (bytes: number) => `{"a":"${'é'.repeat((bytes - 8) / 2)}"}`;
    expect(Buffer.byteLength(filled(16_384))).toBe(16_384);
    await expectReturned(filled(16_384));
    expect((await roundTrip(filled(16_384).replace('{', `{${' '.repeat(1000)}`))).status).toBe(200);
    expect(await roundTrip(filled(16_386))).toMatchObject({
      status: 422,
      issues: [{ path: 'documents.0.metadata', code: 'too_big' }],
    });
  });

  test('16 levels pass, 17 do not, of objects and of arrays', async () => {
    const objects = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
    const arrays = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
    for (const nested of [objects, arrays]) {
      await expectReturned(nested(16));
      expect(await roundTrip(nested(17))).toMatchObject({ status: 422, issues: [{ code: 'too_deep' }] });
    }
  });

  test('a lone surrogate comes back as the escape that came in', async () => {
    await expectReturned('{"a":"\\ud800","\\udfff":1}');
  });

  test('any JSON object comes back as it was', async () => {
    const hostileKey = fc.oneof(
      fc.constantFrom('__proto__', 'constructor', 'prototype', 'toJSON', 'rawJSON', 'length', ''),
      fc.string({ unit: 'binary' }),
    );
    const value = fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' });
    const object = fc
      .array(fc.tuple(hostileKey, value), { maxLength: 6 })
      .map((entries) => JSON.stringify(Object.fromEntries(entries.map(([key, item]) => [key, item]))));
    await fc.assert(
      fc.asyncProperty(object, async (metadata) => {
        await expectReturned(metadata);
      }),
      { numRuns: 300 },
    );
  });

  test('a filter keeps the digits that stored metadata keeps', async () => {
    const url = `/v1/indexes/${await http.createIndex()}/search`;
    const filter = '{"id":12345678901234567890,"n":1}';
    await http.inject({ method: 'POST', url, payload: `{"query":"q","filter":${filter}}` });
    const { filter: asked } = http.service.calls.at(-1)!.arguments[1] as SearchRequest;
    expect(JSON.stringify(asked)).toBe(filter);
  });

  test('a metadata schema is returned as given', async () => {
    const schema = '{"__proto__":{"type":"string"},"max":18446744073709551615}';
    const payload = `{"name":"n","metadata_schema":${schema}}`;
    const created = await http.inject({ method: 'POST', url: '/v1/indexes', payload });
    expect(created.statusCode).toBe(201);
    expect(created.body).toContain(`"metadata_schema":${schema},"status"`);
    expect((await http.inject({ url: '/v1/indexes' })).body).toContain(
      `"metadata_schema":${schema},"status"`,
    );
  });
});
