/** "Search an index". */
import { beforeAll, describe, expect, test } from 'vitest';

import { expectError, expectInvalid, expectReply } from '../../support/running/client.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { passages, textOfTokens } from '../../support/running/texts.ts';
import { ranked, rankedWithComponents } from '../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';
const docsOf = (results: readonly { doc_id: string }[]): string[] => results.map((result) => result.doc_id);

describe('Search an index', () => {
  let library = '';

  beforeAll(async () => {
    const { id } = await makeIndex(stage.client);
    library = id;
    await put(
      stage.client,
      id,
      passages.map((passage) => ({
        doc_id: passage.subject,
        text: passage.text,
        metadata: { subject: passage.subject },
      })),
    );
  });

  test('[search-an-index-1] `POST /v1/indexes/{index_id}/search` Path: `index_id` (UUID).', async () => {
    expectError(await stage.client.search(absentIndex, { query: 'river' }), 404, 'not_found');
    expectInvalid(await stage.client.search('not-a-uuid', { query: 'river' }), 'index_id');
  });

  test('a query of nothing but white space is a legal query', async () => {
    const { results } = await find(stage.client, library, { query: '   ' });
    expect(Array.isArray(results)).toBe(true);
  });

  test('[search-an-index-3, limits-10] `top_k` | integer | Optional; maximum final results returned; 1 to 100.', async () => {
    const { client } = stage;
    for (const topK of [0, -1, 101, 1.5, '10', true]) {
      expectInvalid(await client.search(library, { query: 'river', top_k: topK }), 'top_k');
    }
    const all = await find(client, library, { query: 'river', top_k: 100 });
    expect(all.results).toHaveLength(passages.length);
    for (const topK of [1, 7]) {
      const { results } = await find(client, library, { query: 'river', top_k: topK });
      expect(results).toEqual(all.results.slice(0, topK));
    }
  });

  test('fields that are null are absent', async () => {
    const { client } = stage;
    const query = { query: 'river', return_components: null, candidate_k: null };
    const nulls = {
      ...query,
      top_k: null,
      filter: null,
      where: null,
      offset: null,
      passage: null,
      match: null,
      fields: null,
    };
    const { results } = await find(client, library, nulls);
    expect(results).toEqual((await find(client, library, { query: 'river' })).results);
    expectInvalid(await client.search(library, { query: null }), 'query');
  });

  test('[search-an-index-4, limits-11] `candidate_k` | integer | Optional; retrieval breadth considered before final ranking; 1 to 500.', async () => {
    const { client } = stage;
    for (const candidateK of [0, -1, 501, 2.5, '10']) {
      expectInvalid(await client.search(library, { query: 'river', candidate_k: candidateK }), 'candidate_k');
    }
    for (const candidateK of [1, 500]) {
      await find(client, library, { query: 'river', candidate_k: candidateK });
    }
  });

  test('[search-an-index-5, what-the-service-does-14] `filter` | object | Optional; exact matches against top-level metadata fields.', async () => {
    const { client } = stage;
    const { results } = await find(client, library, { query: 'bread', filter: { subject: 'tea' } });
    expect(docsOf(results)).toEqual(['tea']);
    expect((await find(client, library, { query: 'bread', filter: { subject: 'Tea' } })).results).toEqual([]);
    expect((await find(client, library, { query: 'bread', filter: { subject: 'te' } })).results).toEqual([]);
    for (const filter of [[], 'tea', 7]) {
      expectInvalid(await client.search(library, { query: 'bread', filter }), 'filter');
    }
  });

  test('[decision-9] filter is JSON equality (1 = 1.0; null is not missing; arrays and objects deeply, key order ignored); several fields AND; up to 16; `{}` = no filter', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const sixteen = Object.fromEntries(
      Array.from({ length: 16 }, (_, position) => [`f${position}`, position]),
    );
    const stored: Readonly<Record<string, Record<string, unknown>>> = {
      one: { n: 1, s: 'a' },
      text: { n: '1', s: 'a' },
      null: { n: null },
      missing: {},
      true: { n: true },
      array: { n: [1, { a: 1, b: [2] }] },
      object: { n: { a: 1, b: { c: null } } },
      operator: { n: { $gt: 3 } },
      large: { n: 9007199254740991 },
      zero: { n: 0 },
      sixteen,
    };
    await put(
      client,
      id,
      Object.entries(stored).map(([docId, metadata]) => ({ doc_id: docId, text: 'river', metadata })),
    );
    const matching = async (filter: string): Promise<string[]> => {
      const reply = await client.send('POST', `/v1/indexes/${id}/search`, {
        rawBody: `{"query":"river","top_k":100,"filter":${filter}}`,
      });
      return docsOf(expectReply(reply, ranked).results);
    };
    expect(await matching('{"n":1}')).toEqual(['one']);
    expect(await matching('{"n":1.0}')).toEqual(['one']);
    expect(await matching('{"n":10e-1}')).toEqual(['one']);
    expect(await matching('{"n":"1"}')).toEqual(['text']);
    expect(await matching('{"n":null}')).toEqual(['null']);
    expect(await matching('{"n":true}')).toEqual(['true']);
    expect(await matching('{"n":0}')).toEqual(['zero']);
    expect(await matching('{"n":-0.0}')).toEqual(['zero']);
    expect(await matching('{"n":false}')).toEqual([]);
    expect(await matching('{"n":[1,{"b":[2],"a":1.0}]}')).toEqual(['array']);
    expect(await matching('{"n":[{"a":1,"b":[2]},1]}')).toEqual([]);
    expect(await matching('{"n":[1]}')).toEqual([]);
    expect(await matching('{"n":{"b":{"c":null},"a":1}}')).toEqual(['object']);
    expect(await matching('{"n":{"a":1}}')).toEqual([]);
    // No operators: an object that looks like one is a value.
    expect(await matching('{"n":{"$gt":3}}')).toEqual(['operator']);
    expect(await matching('{"n":9007199254740991}')).toEqual(['large']);
    expect(await matching('{"s":"a"}')).toEqual(['one', 'text']);
    expect(await matching('{"s":"a","n":1}')).toEqual(['one']);
    expect(await matching('{"s":"a","n":null}')).toEqual([]);
    expect(await matching('{}')).toHaveLength(Object.keys(stored).length);
    expect(await matching(JSON.stringify(sixteen))).toEqual(['sixteen']);
    expectInvalid(await client.search(id, { query: 'river', filter: { ...sixteen, more: 1 } }), 'filter');
    // Top-level fields only: a dotted name is a name.
    expect(await matching('{"n.a":1}')).toEqual([]);
  });

  test('a filter never costs results: each matching document is found however far down it ranks', async () => {
    const { client } = stage;
    for (const passage of passages) {
      const { results } = await find(client, library, {
        query: 'a mirror of many segments',
        candidate_k: 1,
        top_k: 1,
        filter: { subject: passage.subject },
      });
      expect(docsOf(results)).toEqual([passage.subject]);
    }
  });

  test('[search-an-index-6] `return_components` | boolean | Optional; includes diagnostic component scores when available.', async () => {
    const { client } = stage;
    for (const value of ['true', 1]) {
      expectInvalid(
        await client.search(library, { query: 'river', return_components: value }),
        'return_components',
      );
    }
    expectReply(await client.search(library, { query: 'river', return_components: false }), ranked);
    expectReply(
      await client.search(library, { query: 'river', return_components: true }),
      rankedWithComponents,
    );
  });

  test('[search-an-index-9, decision-12] Default of `return_components` and the shape of the component scores: not shown. false; `components: { maxsim, per_query_token: [{token_index, document_token_index, similarity}], candidate_score?, candidate_rank? }` per result; no text, no token strings', async () => {
    const { client } = stage;
    const query = 'wild yeasts and bacteria';
    const plain = await find(client, library, { query, top_k: 3 });
    const reply = await client.search(library, { query, top_k: 3, return_components: true });
    const { results } = expectReply(reply, rankedWithComponents);
    expect(results.map(({ components: _components, ...result }) => result)).toEqual(plain.results);
    for (const { components, score } of results) {
      const sum = components.per_query_token.reduce((total, match) => total + match.similarity, 0);
      expect(components.maxsim).toBeCloseTo(score, 3);
      expect(sum).toBeCloseTo(components.maxsim, 2);
      expect(components.per_query_token.map((match) => match.token_index)).toEqual(
        components.per_query_token.map((_, position) => position),
      );
    }
    expect(reply.text).not.toMatch(/yeast|bacteri/i);
  });

  test('no other property of the request is allowed', async () => {
    for (const extra of [{ topK: 3 }, { vector: [1] }, { index: 'x' }]) {
      expectInvalid(await stage.client.search(library, { query: 'river', ...extra }));
    }
    for (const body of [[], null, 'river', 7]) expectInvalid(await stage.client.search(library, body));
  });

  test('[result-item-1, what-the-service-does-5] Result item: `doc_id` | string; `chunk_id` | string; `chunk_index` | integer; `score` | number; `metadata` | object (the metadata of the document)', async () => {
    const { results } = await find(stage.client, library, { query: 'river', top_k: 100 });
    for (const result of results) {
      expect(Object.keys(result).toSorted()).toEqual([
        'chunk_id',
        'chunk_index',
        'doc_id',
        'metadata',
        'normalized_score',
        'score',
        'text_range',
      ]);
      expect(result).toEqual({
        doc_id: expect.any(String),
        chunk_id: expect.any(String),
        chunk_index: 0,
        score: expect.any(Number),
        // Additions of ours.
        text_range: { start: 0, end: expect.any(Number) },
        normalized_score: expect.any(Number),
        metadata: { subject: result.doc_id },
      });
      expect(Number.isFinite(result.score)).toBe(true);
    }
  });

  test('[search-an-index-8, decision-10] Defaults of `top_k` and `candidate_k`: not shown. `top_k` 10', async () => {
    const { results, usage } = await find(stage.client, library, { query: 'river' });
    expect(results).toHaveLength(10);
    expect(usage.chunk_count).toBe(10);
  });

  test('[decision-36] ties by score, then the older document version first, then chunk_index', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 10, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    // Identical chunks of identical documents: equal scores throughout.
    const same = (docIds: readonly string[]) =>
      docIds.map((docId) => ({ doc_id: docId, text: textOfTokens(30) }));
    await put(client, id, same(['b', 'a10']));
    await put(client, id, same(['c', 'a', 'a9']));
    // Replaced: a younger version than all others.
    await put(client, id, same(['a10']));
    const { results } = await find(client, id, { query: 'river stone', top_k: 100 });
    const expected = ['b', 'c', 'a', 'a9', 'a10'].flatMap((docId) =>
      [0, 1, 2].map((chunk) => [docId, chunk]),
    );
    expect(new Set(results.map((result) => result.score)).size).toBe(1);
    expect(results.map((result) => [result.doc_id, result.chunk_index])).toEqual(expected);
    // The cut at top_k follows the same order.
    const few = await find(client, id, { query: 'river stone', top_k: 4 });
    expect(few.results.map((result) => [result.doc_id, result.chunk_index])).toEqual(expected.slice(0, 4));
  });

  test('[decision-34] `chunk_id` opaque, unique in the index, stable until the document is replaced', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 10, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    const documents = ['a', 'b', 'c'].map((docId) => ({ doc_id: docId, text: textOfTokens(30) }));
    await put(client, id, documents);
    const ids = async (): Promise<Map<string, string>> =>
      new Map(
        (await find(client, id, { query: 'river', top_k: 100 })).results.map((result) => [
          `${result.doc_id} ${result.chunk_index}`,
          result.chunk_id,
        ]),
      );
    const before = await ids();
    expect(before.size).toBe(9);
    expect(new Set(before.values()).size).toBe(9);
    await put(client, id, [{ doc_id: 'd', text: 'river' }]);
    await client.deleteDocument(id, 'a');
    const after = await ids();
    for (const name of ['b 0', 'b 1', 'b 2', 'c 0', 'c 1', 'c 2'])
      expect(after.get(name)).toBe(before.get(name));
    await put(client, id, documents.slice(1, 2));
    const replaced = await ids();
    const seen = new Set([...before.values(), ...after.values()]);
    for (const name of ['b 0', 'b 1', 'b 2']) expect(seen).not.toContain(replaced.get(name));
  });

  test('an empty index is searched like any other', async () => {
    const { id } = await makeIndex(stage.client);
    const reply = await find(stage.client, id, { query: 'river stone' });
    expect(reply).toMatchObject({
      results: [],
      usage: { input_tokens: 2, chunk_count: 0, candidate_count: 0 },
    });
  });
});
