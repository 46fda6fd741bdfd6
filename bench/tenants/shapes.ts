/**
 * The dearest legal requests of a tenant (attacks), and the requests of another one (victims). Each names the indexes that it
 * asks, and `store` fills them before.
 */
import { cutToBytes, packageTexts } from '../lib/texts.ts';
import type { AskerRequest } from './asker.ts';

export interface StoredDocument {
  readonly doc_id: string;
  readonly text: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

interface NewIndex {
  readonly name: string;
  readonly chunking?: Readonly<Record<string, number>>;
  readonly documents: readonly StoredDocument[];
}

export interface Scale {
  /** Documents with 16 KiB of metadata that the attacks on metadata ask. */
  readonly wideDocuments: number;
  /** Texts of an upload. */
  readonly uploadTexts: number;
  /** Tokens of the longest window of the model. */
  readonly windowTokens: number;
  /** Documents that an exact search scores. */
  readonly exactDocuments: number;
  /** Indexes of one document. */
  readonly smallIndexes: number;
}

export interface Shape {
  readonly name: string;
  /** The indexes of the shape, which shapes with the same function share. */
  readonly indexes: (scale: Scale) => readonly NewIndex[];
  /** The requests, by the ids of the indexes. They are sent in turn, again and again. */
  readonly requests: (ids: readonly string[], scale: Scale) => readonly AskerRequest[];
}

const documentsMax = 50;
const metadataBytes = 16 << 10;
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);
const realText = (from: number, bytes: number): string =>
  cutToBytes(
    packageTexts(400)
      .join(' ')
      .repeat(2)
      .slice(from * 1000),
    bytes,
  );
const asked = (path: string, body: unknown): AskerRequest => ({ path, body: JSON.stringify(body) });
const documentsOf = (id: string | undefined, action = ''): string => `/v1/indexes/${id}/documents${action}`;
const searchOf = (id: string | undefined): string => `/v1/indexes/${id}/search`;

const wide = ({ wideDocuments }: Scale): readonly NewIndex[] => [
  {
    name: 'wide',
    documents: numbers(wideDocuments).map((n) => ({
      doc_id: `${n}`,
      text: 'whale',
      metadata: { kind: `k${n % 100}`, part: n % 1000, year: n, filler: 'x'.repeat(metadataBytes - 80) },
    })),
  },
];

const arrays = ({ wideDocuments }: Scale): readonly NewIndex[] => [
  {
    name: 'arrays',
    documents: numbers(Math.ceil(wideDocuments / 20)).map((n) => ({
      doc_id: `${n}`,
      text: 'whale',
      metadata: { n: numbers(2600).map((place) => (n * 2600 + place) % 100_000) },
    })),
  },
];

/** Texts of 2.5 KB. */
const uploads = (id: string | undefined, { uploadTexts }: Scale): readonly AskerRequest[] =>
  [0, 1].map((lane) => {
    const documents = numbers(uploadTexts).map((n) => ({ doc_id: `${lane}-${n}`, text: realText(n, 2500) }));
    return asked(documentsOf(id), { documents });
  });

/** 50 texts of 3 KB. */
const scores = (
  path: string,
  more: object,
  documentOf: (text: string, n: number) => unknown,
): readonly AskerRequest[] => {
  const documents = numbers(documentsMax).map((n) => documentOf(realText(n, 3000), n));
  return [asked(path, { ...more, query: 'how is the event loop kept free', documents })];
};

const onWide = (name: string, requests: (id: string | undefined) => readonly AskerRequest[]): Shape => ({
  name,
  indexes: wide,
  requests: ([id]) => requests(id),
});

export const attacks: readonly Shape[] = [
  {
    name: 'contains',
    indexes: arrays,
    requests: ([id]) =>
      numbers(50).map((n) => asked(searchOf(id), { query: 'whale', where: { n: { contains: n * 7 } } })),
  },
  onWide('facets', (id) => [asked(`/v1/indexes/${id}/facets`, { fields: ['kind'] })]),
  onWide('ranges', (id) =>
    numbers(50).map((n) => asked(searchOf(id), { query: 'whale', where: { year: { gt: n } } })),
  ),
  onWide('lists', (id) => [asked(documentsOf(id, '/list'), { where: { year: { gt: 1 } }, limit: 1000 })]),
  onWide('counts', (id) => [
    asked(documentsOf(id, '/delete'), { where: { year: { gt: 1 } }, dry_run: true }),
  ]),
  onWide('deletes by condition', (id) =>
    numbers(1000).map((n) => asked(documentsOf(id, '/delete'), { where: { part: { gte: n, lt: n + 1 } } })),
  ),
  {
    name: 'uploads',
    indexes: () => [{ name: 'uploads', documents: [] }],
    requests: ([id], scale) => uploads(id, scale),
  },
  {
    name: 'overlapping uploads',
    indexes: ({ windowTokens }) => [
      {
        name: 'overlapping',
        chunking: {
          max_tokens: windowTokens,
          overlap_tokens: Math.floor(windowTokens / 2),
          minimum_chunk_tokens: 1,
        },
        documents: [],
      },
    ],
    requests: ([id], scale) => uploads(id, scale),
  },
  {
    name: 'exact search',
    indexes: ({ exactDocuments }) => [
      {
        name: 'exact',
        documents: packageTexts(exactDocuments).map((text, n) => ({ doc_id: `${n}`, text })),
      },
    ],
    requests: ([id]) => [asked(searchOf(id), { query: realText(0, 2000), exact: true })],
  },
  {
    name: 'many indexes',
    indexes: ({ smallIndexes }) =>
      numbers(smallIndexes).map((n) => ({
        name: `small-${n}`,
        documents: [{ doc_id: 'a', text: 'whale', metadata: { year: n } }],
      })),
    requests: (ids) => ids.map((id) => asked(searchOf(id), { query: 'whale', where: { year: { gt: 1 } } })),
  },
  {
    name: 'score',
    indexes: () => [],
    requests: () => scores('/v1/score', {}, (text, n) => ({ doc_id: `${n}`, text })),
  },
  {
    name: 'rerank',
    indexes: () => [],
    requests: () => scores('/v2/rerank', { model: 'default' }, (text) => text),
  },
];

const usual = (): readonly NewIndex[] => [
  {
    name: 'usual',
    documents: packageTexts(200).map((text, n) => ({
      doc_id: `${n}`,
      text,
      metadata: { kind: `k${n % 10}`, year: 1900 + (n % 100) },
    })),
  },
];

const queries = numbers(40).map((n) => realText(n, 60));

const onUsual = (name: string, requests: (id: string | undefined) => readonly AskerRequest[]): Shape => ({
  name,
  indexes: usual,
  requests: ([id]) => requests(id),
});

export const victims: readonly Shape[] = [
  onUsual('search', (id) => queries.map((query) => asked(searchOf(id), { query }))),
  onUsual('upsert', (id) =>
    numbers(40).map((n) =>
      asked(documentsOf(id), { documents: [{ doc_id: `own ${n}`, text: realText(n, 300) }] }),
    ),
  ),
  onUsual('facets', (id) => [asked(`/v1/indexes/${id}/facets`, { fields: ['kind'] })]),
  onUsual('range search', (id) =>
    queries.map((query, n) => asked(searchOf(id), { query, where: { year: { gte: 1900 + n } } })),
  ),
  onUsual('list', (id) => [asked(documentsOf(id, '/list'), { where: { kind: 'k1' }, limit: 10 })]),
];
