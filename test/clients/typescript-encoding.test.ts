/** Values that a caller gives the TypeScript client reach the service unchanged, or nothing is sent. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Document, Maxsimd, MaxsimdError } from '../../clients/typescript/src/index.ts';
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
const metadataTwice = {};
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
  setMatchFields: (id) => client.setMatchFields(id, []),
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

class Secret {
  readonly #value = 1;
  value(): number {
    return this.#value;
  }
}

describe('a value that JSON would leave out or change is refused by its document and path, and nothing is sent', () => {
  const circle: Record<string, unknown> = {};
  circle['v'] = circle;
  let deep: object = {};
  for (let level = 0; level < 100_000; level += 1) deep = { d: deep };
  test.each<[string, unknown, string]>([
    ['NaN', Number.NaN, 'metadata.v'],
    ['an infinite number', { list: [1, -Infinity] }, 'metadata.v.list.1'],
    ['a number object', new Number(Number.NaN), 'metadata.v'],
    ['a bigint', 1n, 'metadata.v'],
    ['a Map', new Map([['k', 1]]), 'metadata.v'],
    ['a Set in a list', [new Set([1])], 'metadata.v.0'],
    ['a RegExp', /a/, 'metadata.v'],
    ['an Error', new Error('a'), 'metadata.v'],
    ['a typed array', new Float32Array(2), 'metadata.v'],
    ['a Buffer', Buffer.from('a'), 'metadata.v'],
    ['an ArrayBuffer', new ArrayBuffer(2), 'metadata.v'],
    ['a function', () => 1, 'metadata.v'],
    ['a symbol', Symbol('a'), 'metadata.v'],
    ['undefined in a list', [1, undefined], 'metadata.v.1'],
    ['an object of a class without fields', new Secret(), 'metadata.v'],
    ['a promise', Promise.resolve(1), 'metadata.v'],
    ['an invalid Date', new Date('no'), 'metadata.v'],
    ['an object that holds itself', circle, 'metadata.v.v'],
    ['an object of very many levels', deep, 'metadata.v.d.d.d'],
  ])('%s', async (_name, v, place) => {
    const metadata = { ok: 1, v } as Document['metadata'] & object;
    const given = [
      { doc_id: 'a', text: 't' },
      { doc_id: 'b', text: 't', metadata },
    ];
    const inList = `documents.1.${place}`;
    for (const [request, path] of [
      [() => client.upsert(index, given), inList],
      [() => client.score({ query: 'q', documents: given }), inList],
      [() => client.updateMetadata(index, 'd', metadata), place],
      [() => client.mergeMetadata(index, 'd', metadata), place.replace('metadata', 'metadata_merge')],
      [
        () => client.createIndex({ name: 'n', metadata_schema: metadata }),
        place.replace('metadata', 'metadata_schema'),
      ],
      [() => client.search(index, { query: 'q', filter: metadata }), place.replace('metadata', 'filter')],
    ] as const) {
      const error = (await request().catch((thrown: unknown) => thrown)) as Error;
      expect(error).toBeInstanceOf(MaxsimdError);
      expect(error.message.slice(0, path.length)).toBe(path);
      if (path === inList) expect(error.message).toContain(' (doc_id "b"): ');
    }
    expect(double.requests).toEqual([]);
    double.intercept = () => undefined;
    double.addIndex('i', index);
    const report = await client.import(index, [...given, { doc_id: 'c', text: 't' }]);
    expect(report).toMatchObject({ documents: 2, failed: [{ doc_id: 'b' }] });
    expect(report.failed[0]?.error.slice(0, place.length)).toBe(place);
    expect([...double.documents.keys()]).toEqual(['a', 'c']);
  });
});

test('values that say what they are in JSON, and absent ones, are sent as that', async () => {
  class Point {
    readonly x = 1;
  }
  const metadata: Record<string, unknown> = {
    date: new Date(0),
    url: new URL('http://h/'),
    money: { toJSON: () => '1.10' },
    point: new Point(),
    bare: Object.assign(Object.create(null) as object, { a: 1 }),
    text: new String('t'),
    absent: undefined,
    same: [metadataTwice, metadataTwice],
  };
  await client.updateMetadata(index, 'd', metadata);
  expect(double.requests[0]?.body).toEqual({
    metadata: {
      date: '1970-01-01T00:00:00.000Z',
      url: 'http://h/',
      money: '1.10',
      point: { x: 1 },
      bare: { a: 1 },
      text: 't',
      same: [{}, {}],
    },
  });
});

describe('an import', () => {
  beforeEach(() => {
    double.intercept = () => undefined;
    double.addIndex('i', index);
  });

  test('does not let a document expire whose time is null', async () => {
    const given = [{ doc_id: 'a', text: 't', expires_at: null }];
    expect(await client.import(index, given)).toMatchObject({ documents: 1, failed: [] });
    await client.upsert(index, documents, { expiresAt: null });
    expect(double.requests.map(({ path }) => path)).toEqual(Array(2).fill(`/v1/indexes/${index}/documents`));
    expect(double.requests[0]?.body.documents).toEqual([{ doc_id: 'a', text: 't' }]);
  });

  test.each([new Date('no'), 1_700_000_000 as unknown as Date])(
    'refuses the document with the time %s',
    async (time) => {
      const given = [{ doc_id: 'a', text: 't', expires_at: time }, ...documents];
      expect(await client.import(index, given)).toMatchObject({
        documents: 1,
        failed: [{ doc_id: 'a', error: expect.stringMatching(/^expires_at: /) }],
      });
      for (const request of [
        () => client.upsert(index, documents, { expiresAt: time }),
        () => client.setExpiry(index, 'd', time),
      ])
        await expect(request()).rejects.toThrow('expires_at');
    },
  );

  test('of refused documents alone sends nothing, and settles them in the order of the input', async () => {
    const seen: number[] = [];
    const given = Array.from({ length: 120 }, (_, at) => ({
      doc_id: `d${at}`,
      text: 't',
      metadata: { v: Number.NaN },
    }));
    const { failed } = await client.import(index, given, { onProgress: ({ settled }) => seen.push(settled) });
    expect([failed.length, seen, double.requests]).toEqual([120, [50, 100, 120], []]);
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
