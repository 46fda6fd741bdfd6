/** Passages and fields in the answers of searches and scores. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RankedResponse, SearchRequest } from '../../../src/service/contract.ts';
import {
  openServiceStage,
  rejection,
  type ServiceStage,
  type TenantStage,
} from '../../support/stages/service-stage.ts';
import { calmestOf } from '../../support/turns.ts';

let stage: ServiceStage;
let tenant: TenantStage;
beforeAll(async () => {
  stage = await openServiceStage();
  tenant = await stage.newTenant();
});
afterAll(() => stage[Symbol.asyncDispose]());

async function indexOf(
  documents: readonly { docId: string; text: string; metadata?: object }[],
): Promise<string> {
  const indexId = await tenant.createIndex();
  await stage.service.upsertDocuments(
    tenant.context(),
    indexId,
    documents.map(({ metadata, ...document }) => ({
      ...document,
      metadata: JSON.stringify(metadata ?? { kind: 'note', body: document.text }),
    })),
  );
  return indexId;
}

const passage = { from: 'body', context: 0 };
const passagesOf = ({ results }: RankedResponse) =>
  Object.fromEntries(results.map(({ docId, passage: found }) => [docId, found && found.text]));

it('a search shows the passage of each chunk, a query and a grouped search too', async () => {
  const long = `${'hay '.repeat(299)}hay needle 🎈 end`;
  const indexId = await indexOf([
    { docId: 'short', text: 'a needle here' },
    { docId: 'long', text: long },
  ]);
  const options: Partial<SearchRequest> = { passage, topK: 3 };
  const found = await tenant.search(indexId, 'needle', options);
  for (const { docId, textRange, passage: shown } of found.results) {
    const text = docId === 'short' ? 'a needle here' : long;
    expect(shown).toEqual({
      text: Array.from(text).slice(textRange!.start, textRange!.end).join(''),
      ...textRange,
    });
  }
  expect(found.results).toHaveLength(3);
  const { results } = await stage.service.query(tenant.context(), indexId, [
    { query: 'needle', returnComponents: false, ...options },
    { query: 'needle', returnComponents: true, groupByDocument: true, ...options },
    { query: 'needle', returnComponents: false },
  ]);
  const [plain, grouped, without] = results as [
    RankedResponse,
    { documents: readonly { chunks: RankedResponse['results'] }[] },
    RankedResponse,
  ];
  expect(plain.results).toEqual(found.results);
  const chunks = grouped.documents.flatMap((document) => document.chunks);
  expect(chunks).toHaveLength(3);
  expect(chunks.flatMap((chunk) => chunk.passage?.highlights?.map(({ text }) => text) ?? [])).toContain(
    'needle',
  );
  expect(without.results.some((result) => 'passage' in result)).toBe(false);
});

it('highlights need the words of the query, which some encoders do not know', async () => {
  const indexId = await indexOf([{ docId: 'a', text: 'red kites, blue' }]);
  const asked = { passage, returnComponents: true };
  const [best] = (await tenant.search(indexId, 'blue', asked)).results;
  expect(best!.passage).toMatchObject({
    highlights: [{ text: 'blue', start: 11, end: 15, queryWord: 'blue' }],
  });
  stage.encoder.locates = false;
  const [older] = (await tenant.search(indexId, 'blue', asked)).results;
  stage.encoder.locates = true;
  expect(older!.passage).toEqual({ text: 'red kites, blue', start: 0, end: 15 });
  expect((await tenant.search(indexId, 'blue', { passage })).results[0]!.passage).not.toHaveProperty(
    'highlights',
  );
});

it('a document without such a string has none; a text that was replaced is cut as it is now', async () => {
  const indexId = await indexOf([
    { docId: 'good', text: 'one two three' },
    { docId: 'missing', text: 'one two three', metadata: { other: 'one two three' } },
    { docId: 'number', text: 'one two three', metadata: { body: 12 } },
    { docId: 'object', text: 'one two three', metadata: { body: { body: 'one two three' } } },
    { docId: 'empty', text: 'one two three', metadata: { body: '' } },
    { docId: 'escaped', text: 'one two "three"', metadata: { 'b\u006fdy': 'one two "three"\n' } },
  ]);
  const asked = async () => passagesOf(await tenant.search(indexId, 'one', { passage }));
  const none = { missing: null, number: null, object: null, empty: null, escaped: 'one two "three"' };
  expect(await asked()).toEqual({ ...none, good: 'one two three' });
  const replace = (text: string) =>
    stage.service.updateDocument(tenant.context(), indexId, 'good', {
      metadata: JSON.stringify({ body: text }),
    });
  await replace('uno due');
  expect(await asked()).toEqual({ ...none, good: 'uno due' });
  await replace('a much longer text than before');
  expect(await asked()).toEqual({ ...none, good: 'a much longer' });
});

it('fields limit the metadata, in their order, and not the passage', async () => {
  const indexId = await indexOf([
    { docId: 'a', text: 'one two', metadata: { body: 'one two', b: 1.0, a: [1], c: {} } },
  ]);
  const { results } = await tenant.search(indexId, 'one', { passage, fields: ['a', 'b', 'absent'] });
  expect(results[0]).toMatchObject({ metadata: '{"a":[1],"b":1}', passage: { text: 'one two' } });
  expect((await tenant.search(indexId, 'one', { fields: [] })).results[0]!.metadata).toBe('{}');
});

it('fields named by paths keep what is around them', async () => {
  const author = { name: 'Ada', born: 1815, of: { town: 'London', land: 'UK' } };
  const parts = [{ n: 1, m: 2 }, 'x', { m: 3 }, [{ n: 4 }], { n: [5] }];
  const indexId = await indexOf([
    { docId: 'a', text: 'one two', metadata: { author, parts, 'a.b': 1, a: { b: 2, c: 3 }, none: {} } },
  ]);
  const shown = async (...fields: string[]): Promise<unknown> =>
    JSON.parse((await tenant.search(indexId, 'one', { fields })).results[0]!.metadata);
  expect(await shown('author.of.town', 'author.name')).toEqual({
    author: { of: { town: 'London' }, name: 'Ada' },
  });
  expect(await shown('author.name', 'author')).toEqual({ author });
  expect(await shown('parts.n')).toEqual({ parts: [{ n: 1 }, { n: [5] }] });
  expect(await shown('a.b')).toEqual({ 'a.b': 1 });
  expect(await shown('a.c', 'none.x', 'author.name.x', 'author.', 'none')).toEqual({ a: { c: 3 }, none: {} });
});

it('a score shows passages of the texts that were submitted', async () => {
  const score = (returnComponents: boolean) =>
    stage.service.score(tenant.context(), {
      query: 'kites',
      documents: [{ docId: 'a', text: 'red 🎈 kites fly', metadata: '{"body":"other"}' }],
      returnComponents,
      passage: { context: 10 },
    });
  expect((await score(false)).results[0]!.passage).toEqual({ text: 'red 🎈 kites fly', start: 0, end: 15 });
  expect((await score(true)).results[0]!.passage!.highlights).toMatchObject([
    { text: expect.any(String), queryWord: 'kites' },
  ]);
});

it('a search that is not wanted any more cuts no passages, and is not charged', async () => {
  const indexId = await indexOf([{ docId: 'a', text: 'one two' }]);
  const own = new AbortController();
  const before = await stage.service.usage(tenant.context());
  const find = stage.service.search({ ...tenant.context(), signal: own.signal }, indexId, {
    query: 'one',
    returnComponents: false,
    passage,
    get fields(): readonly string[] {
      own.abort(new Error('gone'));
      return ['body'];
    },
  });
  expect(await rejection(find)).toMatchObject({ message: 'gone' });
  const { searches } = (await stage.service.usage(tenant.context())).usage;
  expect(searches).toBe(before.usage.searches);
});

it('cutting five hundred long passages leaves other requests their turns', async () => {
  const text = '東京 e\u0301 word, 🎈 '.repeat(600);
  const documents = Array.from({ length: 50 }, (_, at) => ({
    docId: `d${at}`,
    text: 'one two',
    metadata: { body: text },
  }));
  const indexId = await indexOf(documents);
  const search = {
    query: 'one',
    topK: 50,
    returnComponents: false,
    passage: { from: 'body', context: 1000 },
  };
  const queries = Array.from({ length: 10 }, () => search);
  const run = () => stage.service.query(tenant.context(), indexId, queries);
  await run();
  const { longestMs } = await calmestOf(3, run);
  expect(longestMs).toBeLessThan(50);
});
