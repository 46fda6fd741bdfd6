import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SearchRequest } from '../../../src/service/contract.ts';
import { startHttp } from '../../support/http/http-server.ts';
import type { Harness } from '../../support/http/http-server.ts';

let http: Harness;
beforeAll(async () => {
  http = await startHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

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
  test('numbers come back to the digit, whatever a double would make of them', async () => {
    await expectReturned('{"id":12345678901234567890,"ns":[1763725871000000001],"n":-9007199254740993}');
    await expectReturned('{"one":1.0,"third":0.30000000000000004,"big":1E+300,"zero":-0,"beyond":[1e400]}');
  });

  test('escapes come back as they came', async () => {
    await expectReturned('{"a":{"b":2,"c":2},"\\u0062":"\\u00e9\\/"}');
  });

  test('16 KiB as they are returned pass, one byte more does not', async () => {
    const values = [
      `"${'é'.repeat(4_000)}"`,
      `"${String.raw`\u00e9`.repeat(1_500)}"`,
      '9'.repeat(9_000),
      `0.${'0'.repeat(9_000)}`,
      `1e${'0'.repeat(9_000)}`,
      `[${'1.000,'.repeat(1_500)}1]`,
      `[${'{"one":0},'.repeat(900)}0]`,
    ];
    for (const value of values) {
      const filled = (bytes: number) => {
        const room = bytes - Buffer.byteLength(`{"a":${value},"b":""}`);
        return `{"a":${value},"b":"${'x'.repeat(room)}"}`;
      };
      await expectReturned(filled(16_384));
      expect(await roundTrip(filled(16_385))).toMatchObject({
        status: 422,
        issues: [{ path: 'documents.0.metadata', code: 'too_big' }],
      });
    }
  });

  test('white space between tokens is neither counted nor returned, within strings it is', async () => {
    const wide = `\t{ "a b" :\r\n[ 1 , "c  d" ]${' '.repeat(20_000)}, "e":{ } }`;
    const { status, body } = await roundTrip(wide);
    expect(status).toBe(200);
    expect(body).toContain('"metadata":{"a b":[1,"c  d"],"e":{}}}');
  });

  test('a lone surrogate comes back as the escape that came in', async () => {
    await expectReturned('{"a":"\\ud800","\\udfff":1}');
  });

  test('a filter keeps the digits that stored metadata keeps', async () => {
    const url = `/v1/indexes/${await http.createIndex()}/search`;
    const filter = '{"id":12345678901234567890,"n":1}';
    await http.inject({ method: 'POST', url, payload: `{"query":"q","filter": ${filter}}` });
    const { filter: asked } = http.service.calls.at(-1)!.arguments[1] as SearchRequest;
    expect(asked).toBe(filter);
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
