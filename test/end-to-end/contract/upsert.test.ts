/** "Upsert documents": the document input, the request's rules, the response. */
import { describe, expect, test } from 'vitest';

import { expectError, expectInvalid, expectReply, type Reply } from '../../support/running/client.ts';
import { readOpenApi } from '../../support/running/openapi.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { textOfTokens } from '../../support/running/texts.ts';
import { deleted, upserted } from '../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';

async function upsertBody(indexId: string, body: unknown): Promise<Reply> {
  return stage.client.send('POST', `/v1/indexes/${indexId}/documents`, { body });
}

async function upsertRaw(indexId: string, rawBody: string): Promise<Reply> {
  return stage.client.send('POST', `/v1/indexes/${indexId}/documents`, { rawBody });
}

describe('Document input', () => {
  test('[document-input-1, limits-12] `doc_id` | string | yes | Length 1 to 255. Identity of the document within one index (idempotency identity).', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    for (const docId of ['', 'x'.repeat(256), undefined, null, 7, {}, ['a']]) {
      const reply = await upsertBody(id, { documents: [{ doc_id: docId, text: 'river' }] });
      expectInvalid(reply, 'documents.0.doc_id');
    }
    for (const docId of ['x', 'x'.repeat(255)]) {
      await put(client, id, [{ doc_id: docId, text: 'river stone' }]);
      await put(client, id, [{ doc_id: docId, text: 'river stone' }]);
    }
    const { results } = await find(client, id, { query: 'river' });
    expect(results.map((result) => result.doc_id)).toEqual(['x', 'x'.repeat(255)]);
    // Another index, another identity.
    const other = await makeIndex(client);
    await put(client, other.id, [{ doc_id: 'x', text: 'music table' }]);
    expect((await find(client, id, { query: 'river' })).results).toEqual(results);
  });

  test('[decision-35] `doc_id` length counts Unicode code points; `.` and `..` are refused (they cannot be addressed in a URL path)', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const astral = '🪸'.repeat(255);
    await put(client, id, [{ doc_id: astral, text: 'river' }]);
    expectInvalid(
      await upsertBody(id, { documents: [{ doc_id: `${astral}x`, text: 'river' }] }),
      'documents.0.doc_id',
    );
    expect(expectReply(await client.deleteDocument(id, astral), deleted)).toEqual({ deleted: true });
    for (const docId of ['.', '..']) {
      expectInvalid(
        await upsertBody(id, { documents: [{ doc_id: docId, text: 'river' }] }),
        'documents.0.doc_id',
      );
    }
    await put(client, id, [{ doc_id: '...', text: 'river' }]);
  });

  test('[upsert-documents-3] `doc_id` values are unique within the request.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const documents = ['a', 'b', 'a'].map((docId) => ({ doc_id: docId, text: 'river' }));
    const { issues } = expectInvalid(await upsertBody(id, { documents }), 'documents');
    expect(issues?.[0]?.path).toMatch(/^documents\.2(\.doc_id)?$/);
    // Identity is exact: case, spaces and Unicode forms differ.
    await put(
      client,
      id,
      ['a', 'A', 'a ', ' a', '\u00e9', 'e\u0301'].map((docId) => ({ doc_id: docId, text: 'river' })),
    );
    expect((await find(client, id, { query: 'river' })).results).toHaveLength(6);
  });

  test('[document-input-2, limits-8] `text` | string | yes | Non-empty, at most 100 KiB encoded as UTF-8.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    for (const text of ['', undefined, null, 7, {}, ['river']]) {
      expectInvalid(await upsertBody(id, { documents: [{ doc_id: 'a', text }] }), 'documents.0.text');
    }
    const limit = 100 * 1024;
    const ascii = `river${' '.repeat(limit - 5)}`;
    // Two bytes and four bytes a character: the limit counts bytes, not characters.
    const accents = 'é'.repeat(limit / 2);
    const astral = '🪸'.repeat(limit / 4);
    await put(client, id, [
      { doc_id: 'ascii', text: ascii },
      { doc_id: 'accents', text: accents },
      { doc_id: 'astral', text: astral },
    ]);
    for (const text of [`${ascii} `, `${accents} `, `${astral} `]) {
      expectInvalid(await upsertBody(id, { documents: [{ doc_id: 'a', text }] }), 'documents.0.text');
    }
  });

  test('[document-input-3] `metadata` | object | no | Customer-defined top-level JSON object; any additional properties allowed; default `{}`.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const rich = {
      title: 'Über “quotes” \\ and \u0000 control \u2028',
      year: 1851,
      ratio: -1.5e-7,
      none: null,
      yes: true,
      tags: ['a', ['b', { c: 'd' }], []],
      nested: { deeper: { deepest: {} } },
      '': 'empty name',
      'a.b': 'dotted',
    };
    await put(client, id, [
      { doc_id: 'bare', text: 'river' },
      { doc_id: 'empty', text: 'river', metadata: {} },
      { doc_id: 'rich', text: 'river', metadata: rich },
    ]);
    const { results } = await find(client, id, { query: 'river' });
    expect(results.map((result) => [result.doc_id, result.metadata])).toEqual([
      ['bare', {}],
      ['empty', {}],
      ['rich', rich],
    ]);
    for (const metadata of [[], 'text', 7, true]) {
      expectInvalid(
        await upsertBody(id, { documents: [{ doc_id: 'a', text: 'river', metadata }] }),
        'documents.0.metadata',
      );
    }
  });

  test('[limits-16, decision-7] Limits on the size or number of metadata fields and on chunks per document: not shown. 16 KiB serialised per document, depth 16', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const ofBytes = (bytes: number): Record<string, string> => ({ k: 'x'.repeat(bytes - '{"k":""}'.length) });
    const accents = { k: 'é'.repeat((16 * 1024 - '{"k":""}'.length) / 2) };
    const ofDepth = (depth: number): Record<string, unknown> =>
      depth === 1 ? {} : { d: ofDepth(depth - 1) };
    const fields = Object.fromEntries(
      Array.from({ length: 1000 }, (_, position) => [`f${position}`, position]),
    );
    await put(client, id, [
      { doc_id: 'bytes', text: 'river', metadata: ofBytes(16 * 1024) },
      { doc_id: 'accents', text: 'river', metadata: accents },
      { doc_id: 'depth', text: 'river', metadata: ofDepth(16) },
      { doc_id: 'fields', text: 'river', metadata: fields },
    ]);
    const refused = [
      ofBytes(16 * 1024 + 1),
      { k: `${accents.k}x` },
      ofDepth(17),
      { array: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) as unknown },
    ];
    for (const metadata of refused) {
      const reply = await upsertBody(id, { documents: [{ doc_id: 'a', text: 'river', metadata }] });
      expectInvalid(reply, 'documents.0.metadata');
    }
  });

  test('[decision-8] `__proto__` and the like are data, never prototype', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const metadata =
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1}';
    const reply = await upsertRaw(
      id,
      `{"documents":[{"doc_id":"__proto__","text":"river","metadata":${metadata}}]}`,
    );
    expect(expectReply(reply, upserted).upserted_documents).toBe(1);
    const found = await client.search(id, { query: 'river' });
    expect(found.status).toBe(200);
    expect(found.text).toContain(`"metadata":${metadata}`);
    const matching = await client.send('POST', `/v1/indexes/${id}/search`, {
      rawBody: '{"query":"river","filter":{"__proto__":{"polluted":true}}}',
    });
    expect(matching.text).toContain('"doc_id":"__proto__"');
    const bare = await find(client, id, { query: 'river', filter: { polluted: true } });
    expect(bare.results).toEqual([]);
    expect(expectReply(await client.deleteDocument(id, '__proto__'), deleted)).toEqual({ deleted: true });
  });
});

describe('Upsert documents', () => {
  test('[upsert-documents-1] `POST /v1/indexes/{index_id}/documents` Path: `index_id` (UUID, required).', async () => {
    const { client } = stage;
    const documents = [{ doc_id: 'a', text: 'river' }];
    expectError(await client.upsert(absentIndex, documents), 404, 'not_found');
    for (const bad of ['x', '123', `${absentIndex}0`, 'zzzzzzzz-0000-4000-8000-000000000000']) {
      expectInvalid(await client.upsert(bad, documents), 'index_id');
    }
  });

  test('[upsert-documents-2, limits-7] `documents` is required, 1 to 50 items, and no other top-level property is allowed.', async () => {
    const { id } = await makeIndex(stage.client);
    const of = (count: number): unknown[] =>
      Array.from({ length: count }, (_, position) => ({ doc_id: `d${position}`, text: 'river' }));
    for (const body of [
      {},
      { documents: null },
      { documents: {} },
      { documents: 'x' },
      { documents: [] },
      { documents: of(51) },
    ]) {
      expectInvalid(await upsertBody(id, body), 'documents');
    }
    for (const body of [[], null, 7, 'text', true]) expectInvalid(await upsertBody(id, body));
    expectInvalid(await upsertBody(id, { documents: of(1), mode: 'replace' }));
    for (const count of [1, 50]) {
      expect(expectReply(await upsertBody(id, { documents: of(count) }), upserted).upserted_documents).toBe(
        count,
      );
    }
  });

  test('[upsert-documents-4] Each item has exactly the fields `doc_id`, `text`, `metadata`.', async () => {
    const { id } = await makeIndex(stage.client);
    const item = { doc_id: 'a', text: 'river', metadata: {} };
    for (const extra of [{ title: 'x' }, { embedding: [1, 2] }, { Text: 'x' }]) {
      expectInvalid(await upsertBody(id, { documents: [{ ...item, ...extra }] }), 'documents.0');
    }
    for (const bad of [null, 'river', 7, []]) {
      expectInvalid(await upsertBody(id, { documents: [item, bad] }), 'documents.1');
    }
  });

  test('[upsert-documents-5] Response 200: `{ index_id (UUID), upserted_documents (integer >= 0), upserted_chunks (integer >= 0), failed ([DocumentFailure]), usage (request usage object) }`.', async () => {
    const { id } = await makeIndex(stage.client);
    const reply = expectReply(
      await stage.client.upsert(id, [
        { doc_id: 'a', text: textOfTokens(10) },
        { doc_id: 'b', text: textOfTokens(20) },
      ]),
      upserted,
    );
    expect(reply).toEqual({
      index_id: id,
      upserted_documents: 2,
      upserted_chunks: 2,
      failed: [],
      usage: {
        input_tokens: 30,
        document_count: 2,
        chunk_count: 2,
        candidate_count: 0,
        latency_ms: expect.any(Number),
      },
    });
  });

  test('[upsert-documents-6, states-and-transitions-4, states-and-transitions-3, what-the-service-does-2, what-the-service-does-3] Each document is created or replaced by `doc_id` within the index. An upsert with an existing `doc_id` replaces the stored document. Documents have no state field.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 20, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    await put(client, id, [
      { doc_id: 'kept', text: 'river', metadata: { version: 1 } },
      { doc_id: 'replaced', text: textOfTokens(60), metadata: { version: 1, old: true } },
    ]);
    const replacement = await put(client, id, [
      { doc_id: 'replaced', text: 'music', metadata: { version: 2 } },
    ]);
    expect(replacement).toMatchObject({ upserted_documents: 1, upserted_chunks: 1 });
    const { results } = await find(client, id, { query: 'music river', top_k: 100 });
    expect(results).toHaveLength(2);
    expect(results).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ doc_id: 'kept', chunk_index: 0, metadata: { version: 1 } }),
        expect.objectContaining({ doc_id: 'replaced', chunk_index: 0, metadata: { version: 2 } }),
      ]),
    );
    expect((await find(client, id, { query: 'music', filter: { old: true } })).results).toEqual([]);
    for (const result of results) expect(result).not.toHaveProperty('status');
  });

  test('[upsert-documents-7, upsert-documents-8, errors-17] A syntactically valid batch returns HTTP 200 after all items are evaluated, even if individual items fail. Clients must inspect `failed` before treating the batch as complete.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const reply = expectReply(
      await client.upsert(id, [
        { doc_id: 'first', text: 'river' },
        { doc_id: 'blank', text: ' \t\n ' },
        { doc_id: 'last', text: 'stone' },
      ]),
      upserted,
    );
    expect(reply).toMatchObject({ upserted_documents: 2, upserted_chunks: 2 });
    expect(reply.failed.map((failure) => failure.doc_id)).toEqual(['blank']);
    expect(
      (await find(client, id, { query: 'river' })).results.map((result) => result.doc_id).toSorted(),
    ).toEqual(['first', 'last']);
  });

  test('[document-failure-1] Document failure: `doc_id` (string), `error` (string, a diagnostic message; application behavior must not be parsed from it).', async () => {
    const { id } = await makeIndex(stage.client);
    const reply = expectReply(await stage.client.upsert(id, [{ doc_id: 'blank', text: '  ' }]), upserted);
    expect(reply.failed).toEqual([{ doc_id: 'blank', error: expect.stringMatching(/\S/) }]);
  });

  test('a failed replacement keeps the old version', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'a', text: 'river', metadata: { version: 1 } }]);
    const before = await find(client, id, { query: 'river' });
    const reply = expectReply(
      await client.upsert(id, [{ doc_id: 'a', text: '  ', metadata: { version: 2 } }]),
      upserted,
    );
    expect(reply.failed).toHaveLength(1);
    expect((await find(client, id, { query: 'river' })).results).toEqual(before.results);
  });

  test('[upsert-documents-11] A request that fails validation, or would exceed the stored-document allowance, returns 422.', async () => {
    const tenant = await stage.newTenant({ documents: 2 });
    const { id } = await makeIndex(tenant.client);
    const of = (...ids: readonly string[]): { doc_id: string; text: string }[] =>
      ids.map((docId) => ({ doc_id: docId, text: 'river' }));
    // One bad item refuses the whole batch.
    expectInvalid(
      await tenant.client.upsert(id, [...of('a'), { doc_id: 'b', text: '' }]),
      'documents.1.text',
    );
    expectError(await tenant.client.upsert(id, of('a', 'b', 'c')), 422, 'validation_error');
    expect((await readUsage(tenant.client)).usage).toMatchObject({ documents: 0, input_tokens: '0' });
    expect((await find(tenant.client, id, { query: 'river' })).results).toEqual([]);
  });

  test('[upsert-documents-12] Status codes shown for this endpoint: 200, 401, 403, 404, 422, 429, 500, 503.', async () => {
    const { paths } = await readOpenApi(stage.server.url);
    const { responses } = paths['/v1/indexes/{index_id}/documents']?.['post'] ?? { responses: {} };
    expect(Object.keys(responses)).toEqual(
      expect.arrayContaining(['200', '401', '403', '404', '422', '429', '500', '503']),
    );
  });
});
