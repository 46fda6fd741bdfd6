/** The package for LlamaIndex.TS with LlamaIndex.TS, against the service of the environment: `node --test`. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Settings } from '@llamaindex/core/global';
import { Document, MetadataMode, TextNode } from '@llamaindex/core/schema';
import { KVDocumentStore } from '@llamaindex/core/storage/doc-store';
import { SimpleKVStore } from '@llamaindex/core/storage/kv-store';
import { type MetadataFilters, VectorStoreQueryMode } from '@llamaindex/core/vector-store';
import { Maxsimd } from '@maxsimd/client';
import { MaxsimdReranker, MaxsimdRetriever, MaxsimdVectorStore, NoEmbedding } from '@maxsimd/llamaindex';
import { VectorStoreIndex } from 'llamaindex';

const query = 'how do insects communicate?';
const bees = 'Honey bees dance to tell each other where flowers are.';
const whale = 'The blue whale is the largest animal known to have existed.';
const client = new Maxsimd();
const docStore = new KVDocumentStore(new SimpleKVStore());
let indexId = '';
let store: MaxsimdVectorStore;

const source = (nodeId: string) => ({ relationships: { SOURCE: { nodeId, metadata: {} } } });
const nodes = [
  new TextNode({ id_: 'bee', text: bees, metadata: { year: 2020, tags: ['small'] }, ...source('insects') }),
  new TextNode({ id_: 'ant', text: 'Ants carry leaves.', metadata: { year: 2021 }, ...source('insects') }),
  new TextNode({ id_: 'whale', text: whale, metadata: { year: 2022, tags: [] }, ...source('mammals') }),
];

before(async () => {
  Settings.embedModel = new NoEmbedding();
  indexId = (await client.createIndex({ name: `llamaindex ${process.pid}` })).id;
  store = new MaxsimdVectorStore({ client, indexId, docStore });
  assert.deepEqual(await store.add(nodes), ['bee', 'ant', 'whale']);
});

const found = async (filters?: MetadataFilters, more: object = {}): Promise<string[]> => {
  const request = { queryStr: query, mode: VectorStoreQueryMode.DEFAULT, similarityTopK: 10, ...more };
  return (await store.query({ ...request, ...(filters && { filters }) })).ids.toSorted();
};

test('filters become conditions', async () => {
  const one = (key: string, operator: string, value?: unknown) =>
    ({ key, operator, value }) as MetadataFilters['filters'][number];
  const cases: [MetadataFilters['filters'][number], string[]][] = [
    [one('year', '==', 2020), ['bee']],
    [one('year', '!=', 2020), ['ant', 'whale']],
    [one('year', '>', 2020), ['ant', 'whale']],
    [one('year', '>=', 2021), ['ant', 'whale']],
    [one('year', '<', 2021), ['bee']],
    [one('year', '<=', 2021), ['ant', 'bee']],
    [one('year', 'in', [2020, 2022]), ['bee', 'whale']],
    [one('year', 'nin', [2020, 2022]), ['ant']],
    [one('tags', 'any', ['small', 'red']), ['bee']],
    [one('tags', 'contains', 'small'), ['bee']],
    [one('tags', 'is_empty'), ['ant', 'whale']],
  ];
  for (const [filter, ids] of cases)
    assert.deepEqual(await found({ filters: [filter] }), ids, filter.operator);
  const both = [one('year', '>', 2020), one('year', '<', 2022)];
  assert.deepEqual(await found({ filters: both }), ['ant']);
  assert.deepEqual(await found({ filters: both, condition: 'or' }), ['ant', 'bee', 'whale']);
  await assert.rejects(found({ filters: [one('year', 'text_match', '2')] }), /no operator `text_match`/);
  const others = ['!=', '>', '>='].map((operator) => one('year', operator, 2020));
  assert.deepEqual(await found({ filters: [...others, one('year', '!=', 2022)] }), ['ant']);
  const five = Array.from({ length: 5 }, () => one('year', '>', 2020));
  await assert.rejects(found({ filters: five }), /nests more than 3 deep/);
  assert.deepEqual(await found({ filters: five.slice(1) }), ['ant', 'whale']);
  await assert.rejects(found({ filters: [one('any_of', '==', 1)] }), /called `any_of`/);
});

test('a query takes the conditions of the service, and documents by id', async () => {
  assert.deepEqual(await found(undefined, { docIds: ['insects'] }), ['ant', 'bee']);
  const filters = [{ key: 'ref_doc_id', value: 'insects', operator: '==' as const }];
  assert.deepEqual(await found({ filters }, { docIds: ['insects', 'mammals'] }), ['ant', 'bee']);
  const customParams = { where: { year: { not: 2021 } }, exact: true };
  assert.deepEqual(await found(undefined, { customParams }), ['bee', 'whale']);
  await assert.rejects(found(undefined, { customParams, docIds: ['insects'] }), /either `where`/);
  await assert.rejects(found(undefined, { mode: VectorStoreQueryMode.MMR }), /mode `default`/);
});

test('a vector store works in a VectorStoreIndex, and deletes the nodes of a document', async () => {
  const index = await VectorStoreIndex.fromVectorStore(store);
  await index.insert(
    new Document({ id_: 'hive', text: 'Bees dance in the hive.', metadata: { year: 2030 } }),
  );
  const customParams = { where: { year: { lt: 2040 } } };
  const best = async (words: string) =>
    (await index.asRetriever({ similarityTopK: 1, customParams }).retrieve(words))[0];
  assert.equal((await best('largest animal'))?.node.getContent(MetadataMode.NONE), whale);
  assert.match((await best('bees in a hive'))?.node.getContent(MetadataMode.NONE) ?? '', /in the hive/);
  const { documents } = await client.countDocuments(indexId);
  await index.deleteRefDoc('hive', false);
  assert.equal((await client.countDocuments(indexId)).documents, documents - 1);
  assert.equal(await docStore.getRefDocInfo('hive'), undefined);
  assert.equal((await best('bees in a hive'))?.node.id_, 'bee');
});

test('a store that lacks a node leaves it out, and says which nodes the service refused', async () => {
  await docStore.deleteDocument('ant', false);
  assert.deepEqual(await found(), ['bee', 'whale']);
  await assert.rejects(store.add([new TextNode({ id_: 'empty', text: '' })]), /empty:/);
  assert.equal(await docStore.documentExists('empty'), false);
});

test('a retriever returns passages, and a prompt gets no positions', async () => {
  const texts = new Map([
    ['bee', bees],
    ['whale', whale],
  ]);
  const options = { client, indexId, load: async () => texts, topK: 5, where: { year: 2020 } };
  const [hit, ...rest] = await new MaxsimdRetriever(options).retrieve(query);
  assert.equal(rest.length, 0);
  assert.equal(hit?.node.id_, 'bee');
  assert.ok(bees.includes(hit.node.getContent(MetadataMode.NONE)) && hit.score! > 0);
  assert.deepEqual(Object.keys(hit.node.metadata).filter((name) => /range|highl/.test(name)).length, 2);
  assert.doesNotMatch(hit.node.getContent(MetadataMode.LLM), /text_range|highlights/);
});

test('a reranker ranks any number of nodes', async () => {
  const many = Array.from({ length: 60 }, (_, at) => ({
    node: new TextNode({ text: `Whale ${at} swims.` }),
  }));
  const reranker = new MaxsimdReranker({ client, topN: 3 });
  const ranked = await reranker.postprocessNodes([...many, { node: nodes[0]! }], query);
  assert.equal(ranked.length, 3);
  assert.equal(ranked[0]?.node.id_, 'bee');
  assert.ok(ranked[0].score! > ranked[1]!.score!);
  await assert.rejects(reranker.postprocessNodes(many), /needs the query/);
});

test('unknown parameters are refused', async () => {
  const options = { client, indexId, docStore, load: () => new Map<string, string>(), k: 1 };
  const refusal = { name: 'TypeError', message: /unknown parameters: .*\bk\b/ };
  for (const part of [MaxsimdRetriever, MaxsimdReranker, MaxsimdVectorStore])
    assert.throws(() => new part(options), refusal);
  await assert.rejects(store.delete('insects', options), refusal);
  await assert.rejects(found(undefined, { customParams: { k: 1 } }), refusal);
});
