/** What the caller of the TypeScript client gives reaches the service as it is, or nothing is sent. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Maxsimd, MaxsimdError } from '../../clients/typescript/src/index.ts';
import { ApiDouble } from '../support/http/api-double.ts';

let double: ApiDouble;
let client: Maxsimd;
let url: string;
beforeEach(async () => {
  double = new ApiDouble();
  double.intercept = () => ({ body: { deleted: true } });
  url = await double.listen();
  client = new Maxsimd({ url, apiKey: 'k' });
});
afterEach(() => double.close());

const index = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
const documents = [{ doc_id: 'd', text: 't' }];
type Call = (id: string) => Promise<unknown>;

const ofDocument: Record<string, Call> = {
  getDocument: (id) => client.getDocument(index, id),
  updateMetadata: (id) => client.updateMetadata(index, id, {}),
  mergeMetadata: (id) => client.mergeMetadata(index, id, {}),
  setExpiry: (id) => client.setExpiry(index, id, null),
  deleteDocument: (id) => client.deleteDocument(index, id),
};
const ofIndex: Record<string, Call> = {
  getIndex: (id) => client.getIndex(id),
  renameIndex: (id) => client.renameIndex(id, 'n'),
  swapIndexNames: (id) => client.swapIndexNames(id, index),
  deleteIndex: (id) => client.deleteIndex(id),
  upsert: (id) => client.upsert(id, documents),
  import: (id) => client.import(id, documents),
  listDocuments: (id) => client.listDocuments(id).next(),
  getDocument: (id) => client.getDocument(id, 'd'),
  countDocuments: (id) => client.countDocuments(id),
  updateMetadata: (id) => client.updateMetadata(id, 'd', {}),
  mergeMetadata: (id) => client.mergeMetadata(id, 'd', {}),
  setExpiry: (id) => client.setExpiry(id, 'd', null),
  deleteDocument: (id) => client.deleteDocument(id, 'd'),
  facets: (id) => client.facets(id, { fields: ['a'] }),
  deleteDocuments: (id) => client.deleteDocuments(id, { filter: { a: 1 } }),
  search: (id) => client.search(id, { query: 'q' }),
  query: (id) => client.query(id, [{ query: 'q' }]),
  request: (id) => client.request({ method: 'DELETE', path: ['admin', 'v1', 'keys', id], isSafe: true }),
};

test('every method with an id is in these tables', () => {
  const withoutId = 'constructor createIndex listIndexes score usage usageDays activity readiness'.split(' ');
  expect([...Object.keys(ofIndex), ...withoutId].toSorted()).toEqual(
    Object.getOwnPropertyNames(Maxsimd.prototype).toSorted(),
  );
});

describe.each(['', '.', '..', '\ud83d'])('%j is no id: an error, and nothing is sent', (id) => {
  test.each(Object.keys(ofDocument))('of a document, %s', async (name) => {
    await expect(ofDocument[name]!(id)).rejects.toThrow(MaxsimdError);
    expect(double.requests).toEqual([]);
  });
  test.each(Object.keys(ofIndex))('of an index, %s', async (name) => {
    await expect(ofIndex[name]!(id)).rejects.toThrow(MaxsimdError);
    expect(double.requests).toEqual([]);
  });
});

test.each(['%2e%2e', '%2E', '...', '. ', 'a/../b', '/..', '..\\', '?x#y', 'é€', '\0\n', '%'])(
  'the id %j arrives as it is',
  async (id) => {
    expect(await client.deleteDocument(index, id)).toEqual({ deleted: true });
    const [{ method, path } = { method: '', path: '' }] = double.requests;
    const segments = path.split('/');
    expect([method, ...segments.slice(0, -1)]).toEqual(['DELETE', '', 'v1', 'indexes', index, 'documents']);
    expect(decodeURIComponent(segments.at(-1) ?? '')).toBe(id);
    if (id === '%2e%2e') expect(segments.at(-1)).toBe('%252e%252e');
  },
);

test('a cursor goes into the query as it is', async () => {
  const pages = [
    { data: [], next_cursor: 'a&b=c d' },
    { data: [], next_cursor: null },
  ];
  double.intercept = () => ({ body: pages.shift() });
  await client.listDocuments(index).next();
  const targets = double.requests.map(({ path }) => new URL(path, 'http://x').searchParams);
  expect(targets.map((query) => query.get('cursor'))).toEqual([null, 'a&b=c d']);
});

describe('a body that JSON cannot hold is an error, and nothing is sent', () => {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  test.each([
    ['a number', { n: Number.NaN }],
    ['a number in a list', { n: [1, -Infinity] }],
    ['a circle', circle],
    ['a bigint', { n: 1n }],
  ])('%s', async (_name, metadata) => {
    const given = [{ doc_id: 'd', text: 't', metadata }];
    for (const request of [
      () => client.upsert(index, given),
      () => client.updateMetadata(index, 'd', metadata),
      () => client.mergeMetadata(index, 'd', metadata),
      () => client.import(index, given),
      () => client.score({ query: 'q', documents: given }),
      () => client.createIndex({ name: 'n', metadata_schema: metadata }),
    ])
      await expect(request()).rejects.toThrow(MaxsimdError);
    expect(double.requests).toEqual([]);
  });
});

describe('what no request can carry is refused where it is given', () => {
  test.each(['é', '€', 'a\nb', 'a\0', '\ud83d', '', ' a', '\x7f'])('user agent %j', (userAgent) => {
    expect(() => new Maxsimd({ url, apiKey: 'k', userAgent })).toThrow(MaxsimdError);
  });
  test.each(['', 'é', 'a\nb', 'a b', '\ud83d'])('API key %j', (apiKey) => {
    expect(() => new Maxsimd({ url, apiKey })).toThrow(MaxsimdError);
  });
  test.each(['', 'host', 'ftp://h', 'http://', 'http://h:99999', 'http://u:p@h', 'http://h?a'])(
    'address %j',
    (given) => {
      expect(() => new Maxsimd({ url: given, apiKey: 'k' })).toThrow(MaxsimdError);
    },
  );
  test.each(['', 'a b', 'é', 'a\nb', 'x'.repeat(129)])('request id %j', async (requestId) => {
    await expect(client.usage({ requestId })).rejects.toThrow(MaxsimdError);
    expect(double.requests).toEqual([]);
  });
});

test.each(['/', '?', '/?', '#'])('an address may end with %j', async (end) => {
  await new Maxsimd({ url: url + end, apiKey: 'k' }).deleteIndex(index);
  expect(double.requests.map(({ path }) => path)).toEqual([`/v1/indexes/${index}`]);
});
