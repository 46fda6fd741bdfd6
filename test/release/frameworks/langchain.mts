/** The package for LangChain.js with LangChain.js, against the service of the environment: `node --test`. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Document } from '@langchain/core/documents';
import { index, type ListKeyOptions, RecordManager, type UpdateOptions } from '@langchain/core/indexing';
import { RunnableLambda } from '@langchain/core/runnables';
import { InMemoryStore } from '@langchain/core/stores';
import { type Highlight, Maxsimd } from '@maxsimd/client';
import { MaxsimdReranker, MaxsimdRetriever, MaxsimdVectorStore } from '@maxsimd/langchain';

const query = 'how do insects communicate?';
const bees = 'Honey bees 🐝 dance to tell each other where flowers are. ';
const texts = new Map([
  ['whale', 'The blue whale is the largest animal known to have existed.'],
  ['bee', `${'A hive has a queen, and workers who build it. '.repeat(60)}${bees.repeat(20)}`],
]);
const load = (docIds: readonly string[]) =>
  new Map(docIds.flatMap((docId) => (texts.has(docId) ? [[docId, texts.get(docId)!]] : [])));
const client = new Maxsimd();
let indexId = '';
let retriever: MaxsimdRetriever;

before(async () => {
  indexId = (await client.createIndex({ name: `langchain ${process.pid}` })).id;
  const lost = { doc_id: 'lost', text: bees };
  const known = [...texts].map(([doc_id, text]) => ({ doc_id, text, metadata: { kind: doc_id } }));
  await client.import(indexId, [...known, lost]);
  retriever = new MaxsimdRetriever({ client, indexId, load });
});

test('a retriever finds the best passage of each document whose text is known, and where it lies', async () => {
  const found = await retriever.invoke(query);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['bee', 'whale'],
  );
  const { pageContent, metadata } = found[0]!;
  const text = texts.get('bee')!;
  const { start, end } = metadata['text_range'] as { start: number; end: number };
  assert.equal(pageContent, Array.from(text).slice(start, end).join(''));
  assert.ok(pageContent.includes('dance') && pageContent.length < text.length);
  const { kind, doc_id, chunk_id, chunk_index, score } = metadata;
  assert.deepEqual([kind, doc_id], ['bee', 'bee']);
  assert.deepEqual([typeof chunk_id, typeof chunk_index, typeof score], ['string', 'number', 'number']);
  const marked: Highlight[] = metadata['highlights'];
  assert.ok(marked.length > 0);
  for (const one of marked) assert.equal(one.text, text.slice(one.start, one.end));
});

test('a retriever is narrowed when it is made, or for a call, and works in a chain', async () => {
  const ids = async (found: Promise<{ id?: string }[]>) => (await found).map(({ id }) => id);
  const chain = retriever.pipe(new RunnableLambda({ func: (found: { id?: string }[]) => found[0]?.id }));
  assert.equal(await chain.invoke('largest animal'), 'whale');
  assert.deepEqual(await ids(retriever.invoke('largest animal', { k: 1, exact: true })), ['whale']);
  assert.deepEqual(await ids(retriever.invoke(query, { where: { kind: { in: ['whale'] } }, k: 1 })), [
    'whale',
  ]);
  const narrow = new MaxsimdRetriever({ client, indexId, load, k: 1, where: { kind: 'whale' } });
  assert.deepEqual(await ids(narrow.invoke(query)), ['whale']);
  assert.deepEqual(await ids(narrow.invoke(query, { where: {}, k: 9 })), ['bee', 'whale']);
  const traced: string[] = [];
  const callbacks = [{ handleRetrieverStart: (_: unknown, words: string) => void traced.push(words) }];
  await retriever.invoke(query, { k: 1, callbacks });
  assert.deepEqual(traced, [query]);
});

test('a retriever returns the best part of each document that an import cut', async () => {
  const { id } = await client.createIndex({ name: `parts ${process.pid}` });
  const documents = [...texts].map(([doc_id, text]) => ({ doc_id, text }));
  await client.import(id, documents, { keepText: 'body', cut: 1024 });
  const input = { client, indexId: id, textField: 'body' };
  const parts = await new MaxsimdRetriever(input).invoke(query);
  assert.ok(parts.length > 3);
  const found = await new MaxsimdRetriever({ ...input, groupBy: 'part_of' }).invoke(query);
  assert.deepEqual(
    found.map(({ metadata }) => metadata['part_of'] ?? metadata['doc_id']),
    ['bee', 'whale'],
  );
  assert.equal(found[0]?.id, parts[0]?.id);
});

test('a reranker ranks more documents than most services take, as it ranks fewer', async () => {
  const whales = Array.from({ length: 69 }, (_, at) => `Whale number ${at} swims.`);
  const documents = ['', ...whales, texts.get('whale')!, bees].map(
    (pageContent, at) => new Document({ pageContent, metadata: { at } }),
  );
  const ranked = await new MaxsimdReranker({ client, topN: 72 }).compressDocuments(documents, query);
  assert.equal(ranked.length, 71);
  assert.equal(ranked[0]?.pageContent, bees);
  const scores = ranked.map(({ metadata }) => metadata['relevance_score'] as number);
  assert.deepEqual(
    scores,
    scores.toSorted((a, b) => b - a),
  );
  const pair = [documents[0]!, documents[70]!, documents[71]!];
  const [best] = await new MaxsimdReranker({ client, topN: 1 }).compressDocuments(pair, query);
  assert.deepEqual(best, ranked[0]);
  const unknown = new MaxsimdReranker({ client, model: 'no such model' });
  await assert.rejects(unknown.compressDocuments(pair, query), /model/);
});

test('a vector store keeps documents in a store of yours, and finds, replaces and deletes them', async () => {
  const kept = new InMemoryStore<Document>();
  const { id } = await client.createIndex({ name: `store ${process.pid}` });
  const input = { client, indexId: id, documents: kept };
  const store = await MaxsimdVectorStore.fromTexts([bees], [{ kind: 'insect' }], undefined, input);
  const whale = new Document({ id: 'whale', pageContent: texts.get('whale')!, metadata: { kind: 'mammal' } });
  assert.deepEqual(await store.addDocuments([whale]), ['whale']);
  assert.deepEqual(await store.addDocuments([whale], { ids: ['other'] }), ['other']);
  assert.deepEqual(await store.similaritySearch('largest animal', 1), [whale]);
  const [best] = await store.similaritySearchWithScore(query);
  assert.deepEqual(
    [best?.[0].pageContent, best?.[0].metadata, typeof best?.[1]],
    [bees, { kind: 'insect' }, 'number'],
  );
  const mammals = store.asRetriever({ k: 5, filter: { kind: 'mammal' } });
  assert.equal((await mammals.invoke(query)).length, 2);
  await store.addDocuments([new Document({ ...whale, metadata: { kind: 'fish' } })]);
  assert.equal((await mammals.invoke(query)).length, 1);
  await store.delete({ ids: ['other', 'never'] });
  assert.deepEqual(await kept.mget(['other']), [undefined]);
  assert.equal((await client.countDocuments(id)).documents, 2);
  await assert.rejects(
    store.addDocuments([whale, new Document({ pageContent: '' })], { ids: ['a', 'b'] }),
    /1 .*b:/,
  );
  assert.equal((await kept.mget(['a']))[0]?.pageContent, whale.pageContent);
  await assert.rejects(store.similaritySearchVectorWithScore(), /no vectors/);
});

/** LangChain.js has none in memory. Its times are numbers of calls. */
class Records extends RecordManager {
  readonly #known = new Map<string, number>();
  #now = 0;

  override async createSchema() {}
  override async getTime() {
    return ++this.#now;
  }
  override async update(keys: string[], _: UpdateOptions = {}) {
    for (const key of keys) this.#known.set(key, this.#now);
  }
  override async exists(keys: string[]) {
    return keys.map((key) => this.#known.has(key));
  }
  override async listKeys({ before: end = Infinity }: ListKeyOptions = {}) {
    return [...this.#known].filter(([, time]) => time < end).map(([key]) => key);
  }
  override async deleteKeys(keys: string[]) {
    for (const key of keys) this.#known.delete(key);
  }
}

test('the indexing API writes what changed', async () => {
  const { id } = await client.createIndex({ name: `indexing ${process.pid}` });
  const documents = new InMemoryStore<Document>();
  const vectorStore = new MaxsimdVectorStore({ client, indexId: id, documents });
  const recordManager = new Records();
  const indexed = (...contents: string[]) => {
    const docsSource = contents.map((pageContent) => new Document({ pageContent }));
    return index({ docsSource, recordManager, vectorStore, options: { cleanup: 'full', batchSize: 2 } });
  };
  const none = { numAdded: 0, numDeleted: 0, numUpdated: 0, numSkipped: 0 };
  assert.deepEqual(await indexed('A bee.', 'A whale.', 'An ant.'), { ...none, numAdded: 3 });
  assert.deepEqual(await indexed('A bee.', 'A whale.', 'An ant.'), { ...none, numSkipped: 3 });
  const changed = await indexed('A bee.', 'A blue whale.', 'An ant.');
  assert.deepEqual(changed, { numAdded: 1, numDeleted: 1, numUpdated: 0, numSkipped: 2 });
  const found = (await vectorStore.similaritySearch('which animals are there?')).map(
    ({ pageContent }) => pageContent,
  );
  assert.deepEqual(found.toSorted(), ['A bee.', 'A blue whale.', 'An ant.']);
});

test('unknown parameters are refused', async () => {
  const input = { client, indexId, load, documents: new InMemoryStore<Document>(), top_k: 1 };
  const refusal = { name: 'TypeError', message: /unknown parameters: .*top_k/ };
  for (const part of [MaxsimdRetriever, MaxsimdReranker, MaxsimdVectorStore])
    assert.throws(() => new part(input), refusal);
  const store = new MaxsimdVectorStore({ client, indexId, documents: input.documents });
  await assert.rejects(store.addDocuments([], { ids: [], ...input }), refusal);
  await assert.rejects(store.delete({ ids: [], ...input }), refusal);
});
