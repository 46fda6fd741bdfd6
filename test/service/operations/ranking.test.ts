/** Searching and scoring. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RankedResponse, TextRange } from '../../../src/service/contract.ts';
import {
  documentsOf,
  openServiceStage,
  rejection,
  type ServiceStage,
  type TenantStage,
} from '../../support/stages/service-stage.ts';

let stage: ServiceStage;
let tenant: TenantStage;
beforeAll(async () => {
  stage = await openServiceStage();
  tenant = await stage.newTenant();
});
afterAll(() => stage[Symbol.asyncDispose]());

const docIds = ({ results }: RankedResponse) => results.map(({ docId }) => docId);

const scoreOf = (
  own: TenantStage,
  query: string,
  texts: Readonly<Record<string, string>>,
  returnComponents = false,
) =>
  stage.service.score(own.context(), { query, documents: documentsOf(texts, '{"m":1}'), returnComponents });

describe('searching', () => {
  it('orders ties by the older document version, and reads nothing of those that top_k cuts', async () => {
    const indexId = await tenant.createIndex();
    const texts = Object.fromEntries(['d', 'b', 'e', 'a', 'c'].map((id) => [id, 'same words']));
    await tenant.upsert(indexId, texts);
    // The document gets a new version, which is the youngest now.
    await tenant.upsert(indexId, { b: 'same words' });
    const resolve = vi.spyOn(stage.catalog, 'resolveVersions');
    const best = await tenant.search(indexId, 'same', { topK: 2, returnComponents: true });
    expect(docIds(best)).toEqual(['d', 'e']);
    expect(best.usage).toMatchObject({ chunkCount: 2, candidateCount: 5 });
    expect(resolve.mock.calls.map(([, versionIds]) => versionIds.length)).toEqual([2]);
    resolve.mockRestore();
    expect(docIds(await tenant.search(indexId, 'same'))).toEqual(['d', 'e', 'a', 'c', 'b']);
    expect(docIds(await tenant.search(indexId, 'same', { topK: 2, candidateK: 1 }))).toEqual(['d', 'e']);
  });

  it('says where chunks and matched tokens lie in the text, in code points, as a score does', async () => {
    const indexId = await tenant.createIndex();
    const texts = { a: '🎈  red 東京 blue', b: `${'hay '.repeat(300)} needle` };
    const wordsAt = (docId: keyof typeof texts, { start, end }: TextRange) =>
      Array.from(texts[docId]).slice(start, end).join('');
    const located = ({ results }: RankedResponse) =>
      results.map(({ docId, textRange, components }) => ({
        passage: wordsAt(docId as keyof typeof texts, textRange!),
        matched: components?.places.map((row) => wordsAt(docId as keyof typeof texts, row!.place!)),
      }));
    await tenant.upsert(indexId, texts);
    const found = await tenant.search(indexId, 'needle 東京', { topK: 3, returnComponents: true });
    const places = located(found);
    expect(places).toContainEqual({ passage: texts.a, matched: [expect.any(String), '東京'] });
    expect(places).toContainEqual({
      passage: `${'hay '.repeat(44)} needle`,
      matched: ['needle', expect.any(String)],
    });
    expect(places).toContainEqual(expect.objectContaining({ passage: 'hay '.repeat(256).trimEnd() }));
    const scored = located(await scoreOf(tenant, 'needle 東京', texts, true));
    expect(places).toEqual(expect.arrayContaining(scored));
    const { textRange } = (await tenant.search(indexId, '東京', { topK: 1 })).results[0]!;
    expect(wordsAt('a', textRange!)).toBe(texts.a);
    // New metadata move the record, and nothing in the text.
    await stage.service.updateDocument(tenant.context(), indexId, 'a', { metadata: '{"new":1}' });
    expect((await tenant.search(indexId, '東京', { topK: 1 })).results[0]).toMatchObject({ textRange });
  });

  it('matches metadata values also where an encoder says the places of words in a call of its own', async () => {
    const { id } = await stage.service.createIndex(tenant.context(), {
      name: 'codes',
      matchFields: ['code'],
    });
    const documents = ['A-1', 'B-2', 'C-3'].map((code) => ({
      docId: code,
      text: `some words ${code}`,
      metadata: JSON.stringify({ code }),
    }));
    await stage.service.upsertDocuments(tenant.context(), id, documents);
    const search = () => tenant.search(id, 'what is b2', { returnComponents: true });
    const { results } = await search();
    const matches = results.flatMap(({ docId, components }) =>
      components!.matches!.map(({ value, start, end }) => [docId, value, start, end]),
    );
    expect(matches).toEqual([['B-2', 'B-2', 8, 10]]);
    stage.encoder.locates = false;
    onTestFinished(() => void (stage.encoder.locates = true));
    expect((await search()).results).toEqual(results);
  });

  it('that fails is not charged', async () => {
    const own = await stage.newTenant();
    const indexId = await own.createIndex();
    stage.encoder.beforeQuery = () => Promise.reject(new Error('failed'));
    expect(await rejection(own.search(indexId, 'one two'))).toMatchObject({ message: 'failed' });
    stage.encoder.beforeQuery = async () => undefined;
    const late = own.context({ deadlineMs: stage.clock.ms });
    const query = { query: 'one two', returnComponents: false };
    expect(await rejection(stage.service.search(late, indexId, query))).toMatchObject({
      code: 'service_unavailable',
    });
    const { usage } = await stage.service.usage(own.context());
    expect(usage).toMatchObject({ inputTokens: 0n, searches: 0, requests: 0 });
  });
});

describe('work', () => {
  it('above the bound of a request is refused before it begins, with its cost', async () => {
    const own = await stage.newTenant();
    const indexId = await own.createIndex();
    const dear = {
      query: 'word '.repeat(1600),
      candidateK: 500,
      groupByDocument: true,
      returnComponents: false,
    };
    const queries = (count: number) => Array.from({ length: count }, () => dear);
    // The model reads long queries.
    const { served } = stage.encoder;
    stage.encoder.served = served.map((model) => ({ ...model, windowTokensMax: 1_000 }));
    onTestFinished(() => void (stage.encoder.served = served));
    const refused = await rejection(stage.service.query(own.context(), indexId, queries(32)));
    expect(refused).toMatchObject({ code: 'validation_error', issues: [{ code: 'too_much_work' }] });
    expect(String(refused)).toMatch(/about \d+ units of work.* may cost 50000/);
    expect(stage.encoder.inferred).not.toContain(dear.query);
    const short = queries(32).map((query) => ({ ...query, query: 'word' }));
    expect((await stage.service.query(own.context(), indexId, short)).results).toHaveLength(32);
  });

  it('counts the candidates that a later page takes', async () => {
    const own = await stage.newTenant();
    const indexId = await own.createIndex();
    const { served } = stage.encoder;
    stage.encoder.served = served.map((model) => ({ ...model, windowTokensMax: 1_000 }));
    onTestFinished(() => void (stage.encoder.served = served));
    const dear = { query: 'manyletters '.repeat(400), groupByDocument: true, returnComponents: false };
    const queries = (more: object) => Array.from({ length: 12 }, () => ({ ...dear, topK: 50, ...more }));
    const first = await stage.service.query(own.context(), indexId, queries({ candidateK: 1 }));
    expect(first.results).toHaveLength(12);
    const refused = await rejection(
      stage.service.query(own.context(), indexId, queries({ candidateK: 1, offset: 900 })),
    );
    expect(refused).toMatchObject({ code: 'validation_error', issues: [{ code: 'too_much_work' }] });
  });

  it('counts the rows of a chunk, and the charge counts tokens, where rows are pooled', async () => {
    const own = await stage.newTenant();
    const indexId = await own.createIndex();
    const { served } = stage.encoder;
    onTestFinished(() => void (stage.encoder.served = served));
    const pooledBy = (poolFactor: number): void => {
      stage.encoder.served = served.map((model) => ({ ...model, windowTokensMax: 900, poolFactor }));
    };
    const words = 300;
    const dear = {
      query: 'manyletters '.repeat(words),
      candidateK: 500,
      groupByDocument: true,
      returnComponents: false,
    };
    const queries = Array.from({ length: 32 }, () => dear);
    pooledBy(1);
    const refused = await rejection(stage.service.query(own.context(), indexId, queries));
    expect(refused).toMatchObject({ issues: [{ code: 'too_much_work' }] });
    pooledBy(3);
    const { usage } = await stage.service.query(own.context(), indexId, queries);
    expect(usage.inputTokens).toBe(32 * words);
  });

  it('of an exact search is that of all that match, and is refused above the bound', async () => {
    const own = await stage.newTenant();
    const indexId = await own.createIndex();
    const { served } = stage.encoder;
    stage.encoder.served = served.map((model) => ({ ...model, windowTokensMax: 10_000 }));
    onTestFinished(() => void (stage.encoder.served = served));
    const large = { docId: 'large', text: 'w '.repeat(20_000), metadata: '{"n":1}' };
    const small = { docId: 'small', text: 'w', metadata: '{"n":2}' };
    await stage.service.upsertDocuments(own.context(), indexId, [large, small]);
    // The queries alone stay just below the bound.
    const dear = { query: 'manyletters '.repeat(500), exact: true, candidateK: 1, returnComponents: false };
    const queries = (more: object) => Array.from({ length: 32 }, () => ({ ...dear, ...more }));
    const refused = await rejection(stage.service.query(own.context(), indexId, queries({})));
    expect(refused).toMatchObject({ code: 'validation_error', issues: [{ code: 'too_much_work' }] });
    expect(String(refused)).toMatch(/about \d+ units of work.* may cost 50000/);
    expect(stage.encoder.inferred).not.toContain(dear.query);
    const narrow = await stage.service.query(own.context(), indexId, queries({ where: '{"n":{"gt":1}}' }));
    expect(narrow.usage.candidateCount).toBe(32);
    const { chunkCount } = await stage.service.getDocument(own.context(), indexId, 'large');
    const all = await own.search(indexId, 'w', { exact: true, candidateK: 1, topK: 1 });
    expect(all.usage.candidateCount).toBe(chunkCount + 1);
  });

  it('for a caller who left is charged as far as it was run, once', async () => {
    const own = await stage.newTenant();
    const indexId = await own.createIndex();
    const leaving = new AbortController();
    stage.encoder.beforeDocument = async (text) => {
      if (text === 'first') leaving.abort(new Error('gone'));
    };
    const context = own.context({ signal: leaving.signal });
    // The encoder returns the last document first.
    const documents = ['first', 'never run', 'two words'].map((text, n) => ({
      docId: String(n),
      text,
      metadata: '{}',
    }));
    const asked = { query: 'a query', documents: documents.toSpliced(1, 1), returnComponents: false };
    await rejection(stage.service.score(context, asked));
    stage.encoder.beforeDocument = async () => undefined;
    await stage.service.countLeft(context);
    await stage.service.countLeft(context);
    const { usage } = await stage.service.usage(own.context());
    expect(usage).toMatchObject({ inputTokens: 4n, requests: 1, scores: 0 });
    // A request that was answered is not charged again.
    const answered = own.context();
    await stage.service.search(answered, indexId, { query: 'one', returnComponents: false });
    await stage.service.countLeft(answered);
    expect((await stage.service.usage(own.context())).usage).toMatchObject({ inputTokens: 5n, requests: 2 });
  });
});

describe('scoring', () => {
  it('orders ties as the documents were submitted', async () => {
    expect(docIds(await scoreOf(tenant, 'w', { c: 'w', x: 'w w', a: 'w', b: 'w' }))).toEqual([
      'c',
      'x',
      'a',
      'b',
    ]);
  });

  it('explains the chunk that is answered and no other', async () => {
    const explain = vi.spyOn(stage.engine, 'score');
    const answer = await scoreOf(
      tenant,
      'needle',
      { long: `${'hay '.repeat(600)} needle`, short: 'hay' },
      true,
    );
    const places = answer.results.map(({ components }) => components?.documentTokens[0]);
    expect(places).toEqual([88, 0]);
    const explained = explain.mock.calls.filter(([{ components }]) => components);
    // Documents come in the order in which the encoder finishes them.
    expect(explained.map(([, { chunkRows, scales }]) => [[...chunkRows], scales.length])).toEqual([
      [[1], 1],
      [[89], 89],
    ]);
    explain.mockRestore();
  });
});

describe('the monthly allowance', () => {
  it('refuses a request before anything is encoded for it', async () => {
    const own = await stage.newTenant({ inputTokens: 10n });
    const indexId = await own.createIndex();
    await own.upsert(indexId, { a: 'one two three' });
    await own.search(indexId, 'four five');
    const { service } = stage;
    const inferred = stage.encoder.inferred.length;
    const over = [
      own.upsert(indexId, { b: 'one two three', c: 'four five six' }),
      own.search(indexId, 'one two three four five six'),
      service.score(own.context(), {
        query: 'one',
        documents: documentsOf({ x: 'a b c d e' }),
        returnComponents: false,
      }),
    ];
    for (const refused of await Promise.all(over.map(rejection))) {
      expect(refused).toMatchObject({ code: 'usage_limit_exceeded' });
    }
    expect(stage.encoder.inferred).toHaveLength(inferred);
  });
});
