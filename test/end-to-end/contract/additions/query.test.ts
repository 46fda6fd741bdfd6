/** Several searches in one request, `where`, exact searches, and results by document: additions of ours to the interface. */
import { beforeAll, describe, expect, test } from 'vitest';

import { expectError, expectInvalid, expectReply } from '../../../support/running/client.ts';
import { useContractStage } from '../../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { passages, textOfTokens } from '../../../support/running/texts.ts';
import {
  deletedDocuments,
  queried,
  ranked,
  rankedByDocument,
  type Queried,
} from '../../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';
/** Chunks of a document in a grouped result. */
const chunksMax = 10;

let library = '';
beforeAll(async () => {
  library = (await makeIndex(stage.client)).id;
  await put(
    stage.client,
    library,
    passages.map((passage, place) => ({
      doc_id: passage.subject,
      text: passage.text,
      metadata: { subject: passage.subject, place, ...(place % 3 === 0 ? { third: true } : {}) },
    })),
  );
});

type Query = Readonly<Record<string, unknown>>;
const times = (length: number, query: Query): readonly Query[] => Array.from({ length }, () => query);

const ask = async (queries: readonly Query[], indexId = library): Promise<Queried> =>
  expectReply(await stage.client.query(indexId, queries), queried);

/** Documents that meet `where`, in the order of their names. */
async function meeting(where: unknown, indexId = library, more: Query = {}): Promise<string[]> {
  const { results } = await ask([{ query: 'river', top_k: 100, where, ...more }], indexId);
  return results[0]!.results.map((result) => result.doc_id).toSorted();
}

describe('Several queries', () => {
  test('answer in their order what each search alone answers', async () => {
    const { client } = stage;
    const searches = [
      { query: 'wild yeasts and bacteria', top_k: 3 },
      { query: 'bread', filter: { subject: 'tea' } },
      { query: 'a mirror of many segments', candidate_k: 1, top_k: 1, return_components: true },
      ...passages.map(({ text }) => ({ query: text.slice(0, 60) })),
    ].slice(0, 32);
    const { results, usage } = await ask(searches);
    expect(results).toHaveLength(searches.length);
    const sum = { input_tokens: 0, chunk_count: 0, candidate_count: 0 };
    for (const [place, search] of searches.entries()) {
      const reply = await client.search(library, search);
      const { latency_ms: _alone, ...alone } = (reply.body as Queried).usage;
      const { latency_ms: _together, ...together } = results[place]!.usage;
      expect([search, results[place]!.results]).toEqual([search, (reply.body as Queried).results]);
      expect(together).toEqual(alone);
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += alone[name];
    }
    expect(usage).toMatchObject({ ...sum, document_count: 0 });
  });

  test('count as a search each, and once as a request', async () => {
    const { client } = await stage.newTenant({ requestsPerMinute: 10 });
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'a', text: 'river' }]);
    const before = await readUsage(client);
    const reply = await client.query(id, times(32, { query: 'river stone' }));
    const { usage } = expectReply(reply, queried);
    expect(usage.input_tokens).toBe(64);
    expect(Number(reply.headers.get('ratelimit-remaining'))).toBe(6);
    const after = await readUsage(client);
    expect({
      searches: after.usage.searches - before.usage.searches,
      requests: after.usage.requests - before.usage.requests,
      tokens: Number(after.usage.input_tokens) - Number(before.usage.input_tokens),
    }).toEqual({ searches: 32, requests: 2, tokens: 64 });
  });

  test('are refused whole, and charged nothing, where the allowance does not hold all of them', async () => {
    const { client } = await stage.newTenant({ inputTokens: 100 });
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'a', text: 'river' }]);
    const query = { query: textOfTokens(33) };
    expectReply(await client.query(id, [query, query]), queried);
    expectError(await client.query(id, [query, query]), 429, 'usage_limit_exceeded');
    const { usage } = await readUsage(client);
    expect(usage).toMatchObject({ input_tokens: '67', searches: 2 });
    expectReply(await client.query(id, [query]), queried);
  });

  test('are 1 to 32, and ask for no more than is bounded together', async () => {
    const { client } = stage;
    for (const queries of [undefined, null, {}, [], times(33, { query: 'river' })]) {
      expectInvalid(await client.query(library, queries), 'queries');
    }
    expectInvalid(await client.query(library, [{ query: 'river' }, { query: '' }]), 'queries.1.query');
    expectInvalid(await client.query(library, [{ query: 'river', unknown: 1 }]), 'queries.0.unknown');
    expectInvalid(
      await client.query(library, [{ query: 'river', group_by_document: 1 }]),
      'queries.0.group_by_document',
    );
    const hundred = { query: 'river', top_k: 100 };
    expectReply(await client.query(library, times(5, hundred)), queried);
    expectInvalid(
      await client.query(library, [...times(5, hundred), { query: 'river', top_k: 1 }]),
      'queries',
    );
    const detailed = { ...hundred, return_components: true };
    expectReply(await client.query(library, [detailed, hundred]), queried);
    expectInvalid(await client.query(library, [detailed, { ...detailed, top_k: 1 }]), 'queries');
    expectInvalid(
      await client.query(library, [{ ...detailed, top_k: 11, group_by_document: true }]),
      'queries',
    );
    expectInvalid(await client.query('not-a-uuid', [{ query: 'river' }]), 'index_id');
    expectError(await client.query(absentIndex, [{ query: 'river' }]), 404, 'not_found');
  });
});

describe('where', () => {
  const names = (test_: (place: number) => boolean): string[] =>
    passages.flatMap(({ subject }, place) => (test_(place) ? [subject] : [])).toSorted();

  test('finds what in, ranges, not and any_of say, each document however far down it ranks', async () => {
    expect(await meeting({ place: { gte: 2, lt: 5 } })).toEqual(names((place) => place >= 2 && place < 5));
    expect(await meeting({ place: { in: [1, 3.0, 99, '2'] } })).toEqual(
      names((place) => place === 1 || place === 3),
    );
    expect(await meeting({ third: { not: true } })).toEqual(names((place) => place % 3 !== 0));
    expect(await meeting({ third: true, place: { gt: 0 } })).toEqual(
      names((place) => place % 3 === 0 && place > 0),
    );
    expect(await meeting({ subject: { gte: 'a', lt: 'n' } })).toEqual(
      passages
        .map(({ subject }) => subject)
        .filter((subject) => subject >= 'a' && subject < 'n')
        .toSorted(),
    );
    expect(await meeting({ any_of: [{ place: 0 }, { place: { gt: 3, lte: 5 } }], third: true })).toEqual(
      names((place) => place % 3 === 0 && (place === 0 || (place > 3 && place <= 5))),
    );
    expect(await meeting({ place: { not: { in: [0, 1] } } }, library, { filter: { third: true } })).toEqual(
      names((place) => place % 3 === 0 && place > 1),
    );
    expect(await meeting({})).toEqual(names(() => true));
    for (const [place, { subject }] of passages.entries()) {
      const query = { query: 'a mirror of many segments', candidate_k: 1, top_k: 1 };
      const { results } = await ask([{ ...query, where: { place: { gt: place - 1, lt: place + 1 } } }]);
      expect(results[0]!.results.map((result) => result.doc_id)).toEqual([subject]);
    }
  });

  test('is refused by its place where it is none', async () => {
    const { client } = stage;
    for (const [where, path] of [
      ['tea', 'where'],
      [[], 'where'],
      [{ place: { above: 1 } }, 'where.place'],
      [{ place: { gt: [] } }, 'where.place.gt'],
      [{ any_of: [{}, { place: { in: 1 } }] }, 'where.any_of.1.place.in'],
      [{ place: { in: Array.from({ length: 257 }, (_, n) => n) } }, 'where.place.in'],
    ] as const) {
      const queries = [{ query: 'river' }, { query: 'river', where }];
      expectInvalid(await client.query(library, queries), `queries.1.${path}`);
    }
    for (const [operator, own] of Object.entries({
      $gt: 'gt',
      $in: 'in',
      '>=': 'gte',
      containsAny: 'contains_any',
    })) {
      const reply = await client.search(library, { query: 'river', where: { place: { [operator]: 1 } } });
      const [issue] = expectError(reply, 422, 'validation_error').issues ?? [];
      expect(issue).toMatchObject({ path: 'where.place', message: expect.stringContaining(`write ${own}`) });
    }
  });
});

describe('A search', () => {
  test('takes what a query takes, and answers in the shape of a search', async () => {
    const { client } = stage;
    for (const search of [
      { query: 'river', top_k: 5, where: { place: { gte: 2, lt: 9 } } },
      { query: 'a mirror of many segments', candidate_k: 1, top_k: 1, exact: true, return_components: true },
      { query: 'bread', filter: { third: true }, exact: true },
    ]) {
      const { body } = await client.search(library, search);
      const { results } = await ask([search]);
      expect([search, (body as Queried).results]).toEqual([search, results[0]!.results]);
    }
  });

  test('that is exact scores every chunk that matches', async () => {
    const { client } = stage;
    const few = { query: 'river', top_k: 1, candidate_k: 1 };
    const all = expectReply(await client.search(library, { ...few, exact: true }), ranked);
    expect(all.usage.candidate_count).toBe(passages.length);
    const where = { place: { lt: 4 } };
    const some = expectReply(await client.search(library, { ...few, exact: true, where }), ranked);
    expect(some.usage.candidate_count).toBe(4);
    expectInvalid(await client.search(library, { ...few, exact: 'yes' }), 'exact');
  });

  test('by document answers with the best chunk of each, which has the others', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 16, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    const texts = passages.slice(0, 4).map(({ text }, n) => ({ doc_id: `d${n}`, text: text.repeat(n + 1) }));
    await put(client, id, texts);
    const search = { query: passages[1]!.text.slice(0, 80), top_k: 3, group_by_document: true };
    const { results } = expectReply(await client.search(id, search), rankedByDocument);
    const { results: flat } = await find(client, id, { query: search.query, top_k: 100 });
    const best = [...new Set(flat.map(({ doc_id: docId }) => docId))].slice(0, 3);
    expect(results).toEqual(
      best.map((docId) => {
        const own = flat.filter(({ doc_id: other }) => other === docId);
        const chunks = own
          .slice(0, chunksMax)
          .map(({ chunk_id, chunk_index, score, normalized_score, text_range }) => ({
            chunk_id,
            chunk_index,
            score,
            normalized_score,
            text_range,
          }));
        return { ...own[0], chunks };
      }),
    );
    const detailed = { ...search, return_components: true };
    const withComponents = expectReply(await client.search(id, detailed), rankedByDocument);
    for (const result of withComponents.results)
      expect(result.components).toEqual(result.chunks[0]!.components);
    expectReply(await client.search(id, { ...detailed, top_k: 10 }), rankedByDocument);
    expectInvalid(await client.search(id, { ...detailed, top_k: 11 }), 'top_k');
  });

  test('hints at `where` if a value of its filter looks like operators, and compares it as a value', async () => {
    const { client } = stage;
    const filter = { place: { $gte: 2 } };
    const answer = expectReply(await client.search(library, { query: 'river', filter }), ranked);
    expect(answer).toMatchObject({ results: [], hint: expect.stringMatching(/"place".*where/) });
    const { results } = await ask([
      { query: 'river', filter },
      { query: 'river', filter: { place: 2 } },
    ]);
    expect(results.map(({ hint }) => hint)).toEqual([answer.hint, undefined]);
    const reply = await client.deleteDocuments(library, { filter });
    expect(expectReply(reply, deletedDocuments)).toEqual({ deleted: 0, more: false, hint: answer.hint });
  });

  test.each(['filter', 'where'])(
    'hints at `any_of` if its %s is written as for another product',
    async (name) => {
      const must = [{ key: 'place', match: { value: 2 } }];
      const reply = await stage.client.search(library, { query: 'river', [name]: { must } });
      expect(expectReply(reply, ranked)).toMatchObject({
        results: [],
        hint: expect.stringMatching(/"must".*any_of/),
      });
    },
  );
});

describe('Results by document', () => {
  test('are the documents of the best chunks, each with its chunks in their order', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 16, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    // From one chunk to more than are returned of a document.
    await put(
      client,
      id,
      Array.from({ length: 5 }, (_, n) => ({
        doc_id: `d${n}`,
        text: `${passages[n]!.text} ${textOfTokens(50 * n)}`,
        metadata: { n },
      })),
    );
    const query = passages[2]!.text.slice(0, 80);
    const flat = await find(client, id, { query, top_k: 100 });
    const order = [...new Set(flat.results.map((result) => result.doc_id))];
    expect(flat.results.filter((result) => result.doc_id === 'd4').length).toBeGreaterThan(chunksMax);
    for (const topK of [1, 3, 10]) {
      const { results } = await ask([{ query, top_k: topK, group_by_document: true }], id);
      expect(results[0]!.results).toEqual(
        order.slice(0, topK).map((docId) => {
          const own = flat.results.filter((result) => result.doc_id === docId);
          return {
            doc_id: docId,
            score: own[0]!.score,
            normalized_score: own[0]!.normalized_score,
            metadata: own[0]!.metadata,
            chunks: own
              .slice(0, chunksMax)
              .map(({ chunk_id, chunk_index, score, normalized_score, text_range }) => ({
                chunk_id,
                chunk_index,
                score,
                normalized_score,
                text_range,
              })),
          };
        }),
      );
    }
    const detailed = await ask([{ query, top_k: 2, group_by_document: true, return_components: true }], id);
    for (const result of detailed.results[0]!.results) {
      if (!('chunks' in result)) throw new Error('a document has chunks');
      for (const chunk of result.chunks) expect(chunk.components!.maxsim).toBeCloseTo(chunk.score, 3);
    }
  });

  test('are as many as were asked for, however few candidates', async () => {
    const query = { query: 'river', top_k: passages.length, group_by_document: true, candidate_k: 1 };
    const { results } = await ask([query]);
    expect(results[0]!.results).toHaveLength(passages.length);
  });
});

describe('Pages', () => {
  const exact = { query: 'water and stone', exact: true };

  test('follow each other without a gap, by chunks and by documents', async () => {
    for (const more of [
      exact,
      { ...exact, group_by_document: true },
      { ...exact, exact: false, candidate_k: 1 },
    ]) {
      const [whole] = (await ask([{ ...more, top_k: passages.length }])).results;
      const size = Math.ceil(passages.length / 4);
      const offsets = Array.from({ length: 5 }, (_, page) => page * size);
      const { results } = await ask(offsets.map((offset) => ({ ...more, top_k: size, offset })));
      expect(whole!.results).toHaveLength(passages.length);
      expect(results.flatMap((page) => page.results)).toEqual(whole!.results);
      expect(results.at(-1)!.results).toEqual([]);
      expect(results.map(({ usage }) => usage.chunk_count)).toEqual(
        results.map((page) => page.results.length),
      );
    }
  });

  test('have equal scores in one order, also where they are cut', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const copies = Array.from({ length: 30 }, (_, n) => ({ doc_id: `copy-${n}`, text: 'a quiet river' }));
    await put(client, id, copies);
    const query = { query: 'river', top_k: 7 };
    const found: string[] = [];
    for (let offset = 0; offset < copies.length; offset += 7) {
      const { results } = await find(client, id, { ...query, offset });
      found.push(...results.map((result) => result.doc_id));
    }
    expect(found).toEqual(copies.map((copy) => copy.doc_id));
  });

  test('begin at 0 to 900', async () => {
    const { client } = stage;
    expect((await find(client, library, { ...exact, top_k: 1 })).results).toEqual(
      (await find(client, library, { ...exact, offset: 0, top_k: 1 })).results,
    );
    expect((await find(client, library, { query: 'river', offset: 900, top_k: 100 })).results).toEqual([]);
    for (const offset of [-1, 901, 1.5, '1'])
      expectInvalid(await client.search(library, { query: 'river', offset }), 'offset');
  });
});
