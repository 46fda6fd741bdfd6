/** "Errors" and "Status codes": one body for every failure, whatever layer it comes from. */
import { describe, expect, test } from 'vitest';

import { call, expectError, expectInvalid, expectReply, type Reply } from '../../support/running/client.ts';
import { eventually } from '../../support/running/eventually.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { makeIndex, put } from '../../support/running/requests.ts';
import { textOfTokens } from '../../support/running/texts.ts';
import { ranked } from '../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';
const mebibyte = 1024 * 1024;

describe('Errors', () => {
  test('[errors-1, errors-2, errors-3, errors-5, errors-18, decision-15] Error body for every non-success response: `{ error: { code (string), message (string), issues (optional array, field-level validation details) } }`. Every error response carries `x-request-id`.', async () => {
    const { client, server } = stage;
    const { name } = await makeIndex(client);
    const replies: readonly (readonly [number, string, Reply])[] = [
      [401, 'authentication_failed', await call(`${server.url}/v1/usage`)],
      [404, 'not_found', await client.search(absentIndex, { query: 'river' })],
      [404, 'not_found', await client.send('GET', '/v1/nowhere')],
      [404, 'not_found', await client.send('GET', '/nowhere')],
      [404, 'not_found', await client.send('POST', '/v1/usage', { body: {} })],
      [
        413,
        'validation_error',
        await client.send('POST', '/v1/score', { rawBody: ' '.repeat(5 * mebibyte + 1) }),
      ],
      [
        415,
        'validation_error',
        await client.send('POST', '/v1/score', {
          rawBody: '<a/>',
          headers: { 'content-type': 'application/xml' },
        }),
      ],
      [422, 'validation_error', await client.score({})],
      [422, 'validation_error', await client.search('1', { query: 'river' })],
      [422, 'validation_error', await client.createIndex({ name })],
    ];
    for (const [status, code, reply] of replies) expectError(reply, status, code);
  });

  test('[errors-6, errors-16] 422 | `validation_error` | Request failed validation, or would exceed the document allowance.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const { issues } = expectInvalid(
      await client.send('POST', `/v1/indexes/${id}/search`, { body: { query: '', top_k: 0, more: 1 } }),
    );
    // Every problem at once, each with its path.
    const paths = issues?.map((issue) => issue.path) ?? [];
    expect(paths).toEqual(expect.arrayContaining(['query', 'top_k']));
    expect(issues?.length).toBeGreaterThanOrEqual(3);
    const nested = expectInvalid(
      await client.upsert(id, [
        { doc_id: 'a', text: 'river' },
        { doc_id: '', text: '' },
      ]),
    );
    expect(nested.issues?.map((issue) => issue.path).toSorted()).toEqual([
      'documents.1.doc_id',
      'documents.1.text',
    ]);
  });

  test('[errors-10, errors-11] 500 | `internal_error` | Unexpected service failure. 503 | `service_unavailable` | Service temporarily cannot process the request.', async () => {
    // Nothing a client sends is an unexpected failure: hostile but well-formed requests are answered as such.
    const { client } = stage;
    const { id } = await makeIndex(client);
    const hostile = [
      '{"query":"x","top_k":1e400}',
      '{"query":"x","filter":{"a":1e400}}',
      `{"query":"x","filter":{"a":${'['.repeat(5000)}${']'.repeat(5000)}}}`,
      '{"query":"\\ud800"}',
      '{"query":"\\u0000"}',
      '{"query":"x","filter":{"":null,"\\ud800":"\\udfff"}}',
      '{"query":"x","query":"y"}',
      '{"__proto__":{"query":"x"}}',
      '['.repeat(200_000),
      '"\\u',
      '{"query":"x"} trailing',
      '\u0000',
    ];
    for (const rawBody of hostile) {
      const reply = await client.send('POST', `/v1/indexes/${id}/search`, { rawBody });
      expect([200, 422]).toContain(reply.status);
    }
  });

  test('[decision-16] malformed JSON, wrong types, unknown properties 422; wrong media type 415 with `validation_error`; unknown route 404 `not_found`', async () => {
    const { client } = stage;
    const malformed = [
      '',
      '{',
      '{"query":}',
      'query=river',
      "{'query':'river'}",
      '{"query":"river"',
      '\ufeff',
      '[',
      'undefined',
      '{"query":"a\u0001"}',
    ];
    for (const rawBody of malformed) {
      expectError(await client.send('POST', '/v1/score', { rawBody }), 422, 'validation_error');
    }
    const good = JSON.stringify({ query: 'river', documents: [{ doc_id: 'a', text: 'stone' }] });
    for (const type of [
      'text/plain',
      'application/xml',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'nonsense',
    ]) {
      const reply = await client.send('POST', '/v1/score', {
        rawBody: good,
        headers: { 'content-type': type },
      });
      expectError(reply, 415, 'validation_error');
    }
    expectReply(await client.send('POST', '/v1/score', { rawBody: good }), ranked);
    // Not UTF-8.
    const bytes = new Uint8Array([
      ...new TextEncoder().encode('{"query":"'),
      0xff,
      0xfe,
      ...new TextEncoder().encode('"}'),
    ]);
    expectError(await client.send('POST', '/v1/score', { rawBody: bytes }), 422, 'validation_error');
    for (const [method, path] of [
      ['GET', '/v2/indexes'],
      ['GET', '/v1/'],
      ['PUT', '/v1/indexes'],
      ['GET', '/v1/score'],
    ] as const) {
      expectError(await client.send(method, path), 404, 'not_found');
    }
  });

  test('[decision-18] order of checks: authentication, suspension, rate, concurrency, validation, existence', async () => {
    const { server, client } = stage;
    const broken = { rawBody: '{"query":' };
    const oversize = { rawBody: ' '.repeat(5 * mebibyte + 1) };
    const wrongType = { rawBody: 'x', headers: { 'content-type': 'text/plain' } };
    // Authentication before everything, unknown routes of the API included.
    for (const body of [broken, oversize, wrongType]) {
      expectError(
        await call(`${server.url}/v1/score`, { method: 'POST', ...body }),
        401,
        'authentication_failed',
      );
    }
    expectError(await call(`${server.url}/v1/nowhere`), 401, 'authentication_failed');
    // Suspension before rate and validation.
    const suspended = await stage.newTenant({ requestsPerMinute: 1 });
    await suspended.client.usage();
    await stage.operate('tenant', 'suspend', suspended.id);
    await eventually(async () => (await suspended.client.usage()).status === 403);
    expectError(await suspended.client.send('POST', '/v1/score', broken), 403, 'tenant_suspended');
    // Rate before validation.
    const hasty = await stage.newTenant({ requestsPerMinute: 1 });
    expect((await hasty.client.usage()).status).toBe(200);
    for (const body of [broken, oversize, wrongType]) {
      expectError(await hasty.client.send('POST', '/v1/score', body), 429, 'rate_limit_exceeded');
    }
    // Validation before existence, and before the allowances.
    expectInvalid(await client.search(absentIndex, { query: '' }), 'query');
    expectInvalid(await client.upsert(absentIndex, []), 'documents');
    const poor = await stage.newTenant({ requestsPerMinute: 100, inputTokens: 1 });
    const { id } = await makeIndex(poor.client);
    expectInvalid(await poor.client.search(id, { query: textOfTokens(9), top_k: 0 }), 'top_k');
    expectError(await poor.client.search(absentIndex, { query: textOfTokens(9) }), 404, 'not_found');
  });

  test('[status-codes-1] Status codes of all endpoints other than upsert (including the success code of index creation): not shown. 201 for creation, 200 otherwise', async () => {
    const { client } = stage;
    const created = await client.createIndex({ name: 'for its status' });
    const { id } = created.body as { id: string };
    expect(created.status).toBe(201);
    await put(client, id, [{ doc_id: 'a', text: 'river' }]);
    const others = [
      await client.listIndexes(),
      await client.search(id, { query: 'river' }),
      await client.score({ query: 'river', documents: [{ doc_id: 'a', text: 'stone' }] }),
      await client.deleteDocument(id, 'a'),
      await client.usage(),
      await client.send('GET', `/v1/indexes/${id}`),
      await client.send('DELETE', `/v1/indexes/${id}`),
    ];
    expect(others.map((reply) => reply.status)).toEqual(others.map(() => 200));
  });
});
