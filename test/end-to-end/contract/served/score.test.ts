/** "Score transient documents" and its event. */
import { readdir } from 'node:fs/promises';

import { describe, expect, test } from 'vitest';

import { expectInvalid, expectReply } from '../../../support/running/client.ts';
import { useStage } from '../../../support/running/stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { passages, textOfTokens } from '../../../support/running/texts.ts';
import { ranked, rankedWithComponents, type Ranked } from '../../../support/running/wire.ts';

const stage = useStage({ sharedEncoder: true });

async function score(body: Readonly<Record<string, unknown>>): Promise<Ranked> {
  return expectReply(await stage.client.score(body), ranked);
}

describe('Score transient documents', () => {
  const document = { doc_id: 'a', text: 'river stone' };

  test('[score-transient-documents-1] `POST /v1/score` Request: `query` (string, required, length at least 1, at most 8 KiB as UTF-8)', async () => {
    const { client } = stage;
    for (const query of [undefined, '', null, 7]) {
      expectInvalid(await client.score({ query, documents: [document] }), 'query');
    }
    const atLimit = `é${' '.repeat(8 * 1024 - 2)}`;
    await score({ query: atLimit, documents: [document] });
    expectInvalid(await client.score({ query: `${atLimit} `, documents: [document] }), 'query');
  });

  test('[score-transient-documents-2, limits-7] `documents` (array of DocumentInput, required, 1 to 50 items, `doc_id` unique within the request)', async () => {
    const { client } = stage;
    const of = (count: number): { doc_id: string; text: string }[] =>
      Array.from({ length: count }, (_, position) => ({ doc_id: `d${position}`, text: 'river' }));
    for (const documents of [undefined, null, {}, [], of(51)]) {
      expectInvalid(await client.score({ query: 'river', documents }), 'documents');
    }
    expectInvalid(await client.score({ query: 'river', documents: [document, document] }), 'documents');
    expect((await score({ query: 'river', documents: of(50) })).results).toHaveLength(50);
    expect((await score({ query: 'river', documents: of(1) })).results).toHaveLength(1);
  });

  test('[document-input-4, limits-8] The score endpoint takes the same three fields per document (`doc_id` unique within the request).', async () => {
    const { client } = stage;
    const bad: readonly (readonly [string, unknown])[] = [
      ['documents.0.doc_id', { doc_id: '', text: 'river' }],
      ['documents.0.doc_id', { doc_id: 'x'.repeat(256), text: 'river' }],
      ['documents.0.text', { doc_id: 'a', text: '' }],
      ['documents.0.text', { doc_id: 'a', text: ' '.repeat(100 * 1024 + 1) }],
      ['documents.0.metadata', { doc_id: 'a', text: 'river', metadata: [] }],
      ['documents.0.metadata', { doc_id: 'a', text: 'river', metadata: { k: 'x'.repeat(16 * 1024) } }],
      ['documents.0', { doc_id: 'a', text: 'river', title: 'x' }],
    ];
    for (const [path, one] of bad)
      expectInvalid(await client.score({ query: 'river', documents: [one] }), path);
    const metadata = { kind: 'x', deep: { a: [1, null] } };
    const { results } = await score({
      query: 'river',
      documents: [
        { doc_id: 'x'.repeat(255), text: `river${' '.repeat(100 * 1024 - 5)}`, metadata },
        { doc_id: 'bare', text: 'stone' },
      ],
    });
    expect(results.map((result) => result.metadata)).toEqual([metadata, {}]);
  });

  test('[score-transient-documents-3] `return_components` (boolean, optional, diagnostic component scores when available).', async () => {
    const { client } = stage;
    const body = { query: 'river', documents: [document] };
    expectInvalid(await client.score({ ...body, return_components: 'yes' }), 'return_components');
    expectReply(await client.score({ ...body, return_components: false }), ranked);
    const { results } = expectReply(
      await client.score({ ...body, return_components: true }),
      rankedWithComponents,
    );
    expect(results[0]?.components.maxsim).toBeCloseTo(results[0]?.score ?? Number.NaN, 3);
  });

  test('no other property of the request is allowed', async () => {
    for (const extra of [{ top_k: 3 }, { index_id: 'x' }, { filter: {} }]) {
      expectInvalid(await stage.client.score({ query: 'river', documents: [document], ...extra }));
    }
  });

  test('[score-transient-documents-4, decision-13, what-the-service-does-8] The documents are ranked for this one query and are not added to any index. one result per document (its best chunk), best first', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    // The answer stands in the last chunk of a long document, among others that do not have it.
    const answer = passages[1]?.text ?? '';
    const documents = [
      { doc_id: 'short and wrong', text: passages[2]?.text ?? '' },
      { doc_id: 'long and right', text: `${textOfTokens(600)} ${answer}` },
      { doc_id: 'wrong too', text: passages[5]?.text ?? '' },
    ];
    const { results } = await score({ query: passages[1]?.question, documents });
    expect(results.map((result) => result.doc_id).toSorted()).toEqual(
      documents.map((one) => one.doc_id).toSorted(),
    );
    expect(results[0]?.doc_id).toBe('long and right');
    expect(results[0]?.chunk_index).toBeGreaterThan(0);
    const scores = results.map((result) => result.score);
    expect(scores).toEqual(scores.toSorted((left, right) => right - left));
    expect((await find(client, id, { query: 'bread' })).results).toEqual([]);
  });

  test('[result-item-2] `chunk_id` | string (for transient scoring it has the form `transient_<integer>`)', async () => {
    const { results } = await score({
      query: 'river',
      documents: ['c', 'a', 'b'].map((docId) => ({ doc_id: docId, text: 'river stone' })),
    });
    for (const result of results) expect(result.chunk_id).toMatch(/^transient_(0|[1-9][0-9]*)$/);
    expect(new Set(results.map((result) => result.chunk_id)).size).toBe(3);
    // Ties in the order submitted.
    expect(results.map((result) => result.doc_id)).toEqual(['c', 'a', 'b']);
  });

  test('a scored document has the score that the same document has in an index', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const documents = passages
      .slice(0, 20)
      .map((passage) => ({ doc_id: passage.subject, text: passage.text }));
    await put(client, id, documents);
    const query = passages[4]?.question ?? '';
    const searched = new Map(
      (await find(client, id, { query, top_k: 100 })).results.map((result) => [result.doc_id, result.score]),
    );
    for (const result of (await score({ query, documents })).results) {
      expect(result.score).toBeCloseTo(searched.get(result.doc_id) ?? Number.NaN, 1);
    }
  });

  test('a document without tokens has no chunk and so no result, and fails nothing', async () => {
    const reply = await stage.client.score({
      query: 'river',
      documents: [
        { doc_id: 'blank', text: '  ' },
        { doc_id: 'a', text: 'river' },
      ],
    });
    expect(reply.status).toBe(200);
    const { results, usage } = expectReply(reply, ranked);
    expect(results.map((result) => result.doc_id)).toEqual(['a']);
    expect(usage.candidate_count).toBe(2);
  });

  test('[request-usage-object-4] Response: `{ results: [Result item, ...], usage: request usage object }`. a transient score reports `chunk_count` 0 and `candidate_count` equal to the number of submitted documents', async () => {
    const { usage } = await score({
      query: 'river stone house',
      documents: ['a', 'b', 'c', 'd'].map((docId) => ({ doc_id: docId, text: textOfTokens(300) })),
    });
    expect(usage).toMatchObject({ input_tokens: 3 + 4 * 300, chunk_count: 0, candidate_count: 4 });
  });

  test('[score-transient-documents-5, what-the-service-does-11, what-the-service-does-12] Nothing is persisted as indexed content. An aggregate usage event is recorded.', async () => {
    const tenant = await stage.newTenant();
    const list = async (): Promise<string[]> =>
      (await readdir(stage.server.scratch.data, { recursive: true })).toSorted();
    await tenant.client.score({ query: 'river', documents: [document] });
    const before = await list();
    const documents = Array.from({ length: 50 }, (_, position) => ({
      doc_id: `d${position}`,
      text: textOfTokens(20),
    }));
    for (let round = 0; round < 3; round += 1)
      expectReply(await tenant.client.score({ query: 'river', documents }), ranked);
    expect(await list()).toEqual(before);
    expect((await readUsage(tenant.client)).usage).toMatchObject({
      scores: 4,
      documents: 0,
      document_upserts: 0,
    });
  });

  test('[events-1] The service records an aggregate usage event for each transient scoring request; it holds no query, document, chunk or derived data.', async () => {
    const tenant = await stage.newTenant();
    for (let count = 1; count <= 3; count += 1) {
      await tenant.client.score({ query: 'river', documents: [document] });
      // Sums only: what the tenant can see of an event is what there is.
      expect((await readUsage(tenant.client)).usage).toMatchObject({
        scores: count,
        input_tokens: String(3 * count),
      });
    }
  });

  test('[events-2] Events or callbacks delivered to clients: not shown.', async () => {
    // None are: nothing in a request names an address to call.
    expectInvalid(
      await stage.client.score({ query: 'river', documents: [document], callback_url: 'http://127.0.0.1:9' }),
    );
    expectInvalid(await stage.client.createIndex({ name: 'calls back', webhook: 'http://127.0.0.1:9' }));
  });
});
