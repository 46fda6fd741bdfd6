/**
 * `maxsimd import --from`, on files that the libraries themselves wrote (`test/fixtures/libraries`, with the programs that wrote
 * them), and what an import without `--from` says about the same files.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { DocumentReader, isProblem } from '../../../src/cli/import/document.ts';
import { exportNames, type ExportName } from '../../../src/cli/import/exports/names.ts';
import type { FieldChoice } from '../../../src/cli/import/fields.ts';
import { openSource, rowsOf } from '../../../src/cli/import/sources/source.ts';
import { isObject, parseJson } from '../../../src/cli/json.ts';
import { repositoryRoot } from '../../support/running/launch.ts';
import { useImportStage } from './import-stage.ts';

const fixtures = path.resolve(import.meta.dirname, '../../fixtures/libraries');
const stage = useImportStage('moved');
const { file, importFrom, expectRefused } = stage;

const fixture = (from: ExportName, name: string): string => path.join(fixtures, from, name);

const bees = 'Honey bees dance to tell each other where flowers are.';
const whale = 'The blue whale is the largest animal known to have existed.';
const bridges = 'Bridges of steel carry trains over wide rivers.';
const tides = 'Tides follow the moon.';
const karl = { year: 1967, tags: ['bee', 'dance'], author: { name: 'Karl', born: 1886 } };
const raw = parseJson;
const whales = { year: null, serial: raw('12345678901234567890'), title: 'Whales' };
const dated = { at: '2026-11-27 09:30:00', ms: 1795771800000, score: 0.1 };

type Documents = Readonly<Record<string, readonly [text: string, metadata: object]>>;

/** The three documents that each library has, under the identifiers that it gives them. */
function three(
  [first, second, third]: readonly string[] = ['9007199254740993', '9007199254740992', '30'],
): Documents {
  return { [first!]: [bees, karl], [second!]: [whale, whales], [third!]: [bridges, dated] };
}

/** The documents that an import would send, with all digits of its numbers. */
async function read(
  source: string,
  fields: FieldChoice,
  stdin = Readable.from([]),
): Promise<{ readonly sent: string; readonly problems: readonly string[]; readonly reader: DocumentReader }> {
  const opened = await openSource({ source, fields }, stdin, new AbortController().signal);
  const reader = new DocumentReader(fields);
  const sent: Record<string, readonly [string, unknown]> = {};
  const problems: string[] = [];
  for await (const row of rowsOf(opened)) {
    const { item } = reader.read(row);
    if (isProblem(item)) problems.push(`${item.line} ${item.docId}: ${item.error}`);
    else sent[item.docId] = [item.document.text, item.document.metadata];
  }
  return { sent: textOf(sent), problems, reader };
}

function textOf(documents: object): string {
  return JSON.stringify(documents, (_name, value: unknown) => (isObject(value) ? sorted(value) : value), 1);
}

function sorted(object: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(object).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

const titled = (documents: Documents): Documents =>
  Object.fromEntries(
    Object.entries(documents).map(([id, [text, metadata]]) => [
      id,
      [text, { ...metadata, title: `Part ${[bees, whale, bridges].indexOf(text)}` }],
    ]),
  );
const nested = (documents: Documents): Documents =>
  Object.fromEntries(
    Object.entries(documents).map(([id, [text, metadata]]) => {
      const { tags = [], ...meta } = metadata as { readonly tags?: unknown };
      return [id, [text, { meta, code: '007', tags, lang: 'en', pages: Number(BigInt(id) % 100n) }]];
    }),
  );
const uuids = [
  '14faa7de-9a99-5d33-a1f5-be26f83ad877',
  'a7e4073c-5842-54b9-b964-0c12ff04b748',
  '80798e70-401c-5194-a03a-d707995ba3d6',
];
const nodes = [9007199254740993n, 9007199254740992n, 30n].map((key) => `node-doc-${key}-0`);
const inChroma: Documents = {
  '9007199254740993': [bees, { year: 1967, author: 'Karl' }],
  '9007199254740992': [whale, { title: 'Whales', serial: raw('9007199254740993') }],
  30: [bridges, {}],
};
const noChroma = '4 vector only: the text is empty';
const noPicture = '5 picture: there is no text; --text-field takes another field, such as "title"';
const inHaystack: Documents = { ...titled(three()), tides: [tides, { score: 3, kind: 'sea' }] };
const inQdrant: Documents = { ...three(), '07b806c7-3ec0-5bf7-9e99-292527db489b': [tides, { id: 7 }] };
const utc = (documents: Documents): Documents => ({
  ...documents,
  [uuids[2]!]: [bridges, { ...dated, at: '2026-11-27 09:30:00+00:00' }],
});

interface Moved {
  readonly name: string;
  readonly fields?: FieldChoice;
  readonly documents: Documents;
  readonly problems?: readonly string[];
  /** Field -> vectors that were left out. */
  readonly vectors?: Readonly<Record<string, number>>;
}

const moves: Readonly<Record<ExportName, readonly Moved[]>> = {
  langchain: [
    {
      name: 'dumps.json',
      documents: three(),
      problems: ['4 undefined: no identifier: --auto-id makes one of the content'],
    },
    {
      name: 'lines.jsonl',
      documents: three(),
      problems: ['4 undefined: no identifier: --auto-id makes one of the content'],
    },
    {
      name: 'store.json',
      documents: { ...three(), tides: [tides, { kind: 'sea' }] },
      vectors: { vector: 4 },
    },
  ],
  llamaindex: [
    {
      name: 'docstore.json',
      documents: { ...three(nodes), lone: [tides, { kind: 'sea' }] },
      vectors: { embedding: 1 },
    },
    {
      name: 'lines.jsonl',
      documents: { ...three(nodes), lone: [tides, { kind: 'sea' }] },
      vectors: { embedding: 1 },
    },
    { name: 'documents.jsonl', documents: three(['doc-9007199254740993', 'doc-9007199254740992', 'doc-30']) },
  ],
  haystack: ['store.json', 'lines.jsonl', 'flat.jsonl'].map((name) => ({
    name,
    documents: inHaystack,
    problems: [noPicture],
    vectors: { embedding: 3 },
  })),
  chroma: [
    { name: 'get.json', documents: inChroma, problems: [noChroma] },
    { name: 'pages.jsonl', documents: inChroma, problems: [noChroma] },
    { name: 'with-vectors.json', documents: inChroma, problems: [noChroma], vectors: { embeddings: 3 } },
  ],
  weaviate: ['lines.jsonl', 'objects.json'].map((name) => ({
    name,
    fields: { text: 'body' },
    documents: utc(three(uuids)),
    vectors: { vector: 3 },
  })),
  milvus: ['query.json', 'bulk.json', 'bulk.jsonl', 'bulk.csv', 'bulk.parquet'].map((name) => ({
    name,
    documents: nested(three()),
    vectors: { vector: 3 },
  })),
  qdrant: [
    { name: 'records.jsonl', documents: inQdrant, vectors: { vector: 4 } },
    { name: 'scroll.jsonl', documents: inQdrant },
    {
      name: 'scroll.json',
      documents: { 1: ['Bees fly.', { source: 'a.md', page: 1 }], 30: [bridges, dated] },
    },
  ],
  elasticdump: [
    {
      name: 'lines.jsonl',
      fields: { text: 'body' },
      documents: {
        '9007199254740993': [bees, { serial: raw('9007199254740993'), tags: karl.tags, author: karl.author }],
        '9007199254740992': [whale, { serial: raw('9007199254740992'), title: 'Whales', year: null }],
        30: [bridges, { at: dated.at, ms: dated.ms, source: 'a.md' }],
      },
    },
  ],
};

describe.each(exportNames)('--from %s', (from) => {
  it.each(moves[from].map((move) => [move.name, move] as const))('reads %s', async (name, move) => {
    const { fields, documents, problems = [], vectors = {} } = move;
    const found = await read(fixture(from, name), { from, ...fields });
    expect(found.sent).toBe(textOf(documents));
    expect(found.problems).toEqual(problems);
    expect(Object.fromEntries(found.reader.arraysLeftOut)).toEqual(vectors);
  });

  it('has a test for each file of the library', () => {
    const others = new Set(['rounded.jsonl', 'source-only.jsonl']);
    const names = readdirSync(path.join(fixtures, from)).filter((name) => !others.has(name));
    expect(moves[from].map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  });

  it('refuses another file, with the forms that it knows', async () => {
    const other = file('other.jsonl', '{"name":"a","body":"some words"}\n');
    const forms = from === 'milvus' ? /no identifier|no text/ : new RegExp(`--from ${from} reads these of `);
    await expectRefused(other, forms, '--from', from);
    await expectRefused(
      file('other.json', '{\n"name":{"a":1}\n}'),
      new RegExp(`--from ${from} reads`),
      '--from',
      from,
    );
  });
});

describe('options of fields', () => {
  it('go before the names of the library, with or without the place in the row', async () => {
    for (const text of ['title', 'payload.title']) {
      const { sent, problems } = await read(fixture('qdrant', 'records.jsonl'), { from: 'qdrant', text });
      const { title, ...metadata } = whales;
      expect(sent).toBe(textOf({ '9007199254740992': [title, { ...metadata, page_content: whale }] }));
      expect(problems[1]).toContain(
        'there is no text; --text-field takes another field, such as "page_content"',
      );
    }
    const usual = await read(fixture('qdrant', 'records.jsonl'), {
      from: 'qdrant',
      text: 'payload.page_content',
    });
    expect(JSON.parse(usual.sent)).toMatchObject({ 30: [bridges, dated] });
    const byPayload = await read(fixture('qdrant', 'records.jsonl'), { from: 'qdrant', id: 'payload.id' });
    expect(JSON.parse(byPayload.sent)).toEqual({
      7: [tides, { id: '07b806c7-3ec0-5bf7-9e99-292527db489b' }],
    });
    const byYear = await read(fixture('langchain', 'lines.jsonl'), {
      from: 'langchain',
      id: 'metadata.year',
    });
    expect(JSON.parse(byYear.sent)).toEqual({
      1967: [bees, { id: '9007199254740993', tags: karl.tags, author: karl.author }],
    });
  });

  it('name fields in the metadata that LangChain puts into a store', async () => {
    const payload = { text: 'Bees.', lang: 'en', metadata: { doc: 'd1', by: 'Karl' } };
    const source = file('points.jsonl', JSON.stringify({ id: 1, payload }));
    for (const id of ['payload.metadata.doc', 'metadata.doc', 'payload.doc', 'doc']) {
      const { sent } = await read(source, { from: 'qdrant', id });
      expect(JSON.parse(sent)).toEqual({ d1: ['Bees.', { id: 1, lang: 'en', by: 'Karl' }] });
    }
    const { sent } = await read(source, {
      from: 'qdrant',
      metadata: ['payload.lang', 'payload.metadata.by'],
    });
    expect(JSON.parse(sent)).toEqual({ 1: ['Bees.', { lang: 'en', by: 'Karl' }] });
  });

  it('lose no field to another of its name', async () => {
    const payload = { text: 'Bees.', source: 'outer', metadata: { source: 'inner' } };
    const source = file('points.jsonl', JSON.stringify({ id: 1, payload }));
    const { sent } = await read(source, { from: 'qdrant' });
    expect(JSON.parse(sent)).toEqual({ 1: ['Bees.', { source: 'outer', metadata: { source: 'inner' } }] });
    const { sent: byInner } = await read(source, { from: 'qdrant', id: 'payload.metadata.source' });
    expect(JSON.parse(byInner)).toEqual({ inner: ['Bees.', { id: 1, source: 'outer' }] });
  });

  it('take null for absent', async () => {
    const source = file('points.jsonl', '{"id":1,"payload":{"text":"Bees.","key":null}}');
    const { sent, problems } = await read(source, { from: 'qdrant', id: 'key', autoId: true });
    expect([Object.values(JSON.parse(sent)), problems]).toEqual([[['Bees.', { id: 1, key: null }]], []]);
  });

  it('choose the metadata, vectors included', async () => {
    const metadata = ['tags', 'vector'];
    const { sent, reader } = await read(fixture('qdrant', 'records.jsonl'), { from: 'qdrant', metadata });
    expect(JSON.parse(sent)).toMatchObject({
      '9007199254740993': [bees, { tags: karl.tags, vector: [5, 0.5, -0.25, 1] }],
      30: [bridges, { vector: [2, 0.5, -0.25, 1] }],
    });
    expect(Object.fromEntries(reader.leftOut)).toMatchObject({ author: 1, year: 2, at: 1 });
    expect(reader.arraysLeftOut.size).toBe(0);
  });

  it('make ids where the library has none; values that it could not write are counted', async () => {
    const { sent, reader } = await read(fixture('langchain', 'dumps.json'), {
      from: 'langchain',
      autoId: true,
    });
    expect(Object.values(JSON.parse(sent))).toContainEqual([tides, { kind: 'sea' }]);
    expect([...reader.remarks]).toMatchObject(
      [[/such as dates: they are left out$/, { rows: 1, places: [{ line: 4 }] }]].map(([, counts]) => [
        expect.stringMatching(/such as dates: they are left out$/),
        counts,
      ]),
    );
  });
});

describe('--from milvus', () => {
  it('tells vectors by their numbers, and opens JSON texts of columns alone', async () => {
    const row = {
      id: 9,
      pk: 1,
      text: 'Bees.',
      note: '[1]',
      embedding_model: { name: 'a' },
      vector_tags: ['a', 'b'],
      vector: [raw('0.12345678901234567'), 1],
      sparse_vector: { 3: 0.5 },
      sparse_embedding: { indices: [3], values: [0.5] },
      $meta: 'no JSON',
    };
    const { sent, reader } = await read(file('rows.jsonl', JSON.stringify(row)), { from: 'milvus' });
    const { pk: _pk, text, vector: _v, sparse_vector: _s, sparse_embedding: _e, ...fields } = row;
    expect(JSON.parse(sent)).toEqual({ 1: [text, fields] });
    expect([...reader.arraysLeftOut.keys()].toSorted()).toEqual([
      'sparse_embedding',
      'sparse_vector',
      'vector',
    ]);
  });
});

describe('--from langchain', () => {
  it('fails a row that is too deep by its line', async () => {
    const line = (id: string, a: string): string =>
      `{"id":"${id}","page_content":"Bees.","metadata":{"a":${a}}}\n`;
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    const { sent, problems } = await read(file('deep.jsonl', line('deep', deep) + line('b', '[[1]]')), {
      from: 'langchain',
    });
    expect(problems).toEqual(['1 deep: metadata must nest at most 16 levels']);
    expect(JSON.parse(sent)).toEqual({ b: ['Bees.', { a: [[1]] }] });
  });
});

describe('without --from', () => {
  const files = exportNames
    .filter((from) => from !== 'milvus')
    .flatMap((from) => moves[from].map(({ name }) => [from, name] as const));

  it.each(files)('an export of %s is refused with the words that read it: %s', async (from, name) => {
    await expectRefused(
      fixture(from, name),
      new RegExp(`it looks like an export of \\w+, which --from ${from} reads$`),
    );
  });

  it.each(['bulk.csv', 'bulk.parquet'])('JSON text of $meta is told: %s', async (name) => {
    const { document } = await importFrom(fixture('milvus', name), '--dry-run');
    expect(document.remarks).toMatchObject([
      { remark: expect.stringContaining('--from milvus opens it'), rows: 3 },
    ]);
  });
});

const stdinOf = (...parts: readonly string[]): Readable =>
  Readable.from(parts.map((part) => Buffer.from(part)));

describe('a file that cannot be read in one piece', () => {
  it('is refused on standard input if it is read several times', async () => {
    const stdin = stdinOf('{"ids": [', '"a"], "documents": ["t"]}');
    await expect(read('-', { from: 'chroma' }, stdin)).rejects.toThrow('give its path, not standard input');
    const points = stdinOf('{"result"', ':{"points":[{"id":1,"payload":{"text":"t"}}]}}');
    expect(JSON.parse((await read('-', { from: 'qdrant' }, points)).sent)).toEqual({ 1: ['t', {}] });
  });

  it('is refused where a column of Chroma and its ids differ in length', async () => {
    for (const documents of [
      '["t","u"]',
      '["t"]}{"ids":["b"],"documents":["u","v"]',
      '["t"]}{"ids":["b","c"],"documents":["u"]',
      '["t"]}{"ids":["b","c"],"documents":["u"]}{"ids":["d"],"documents":["v"]',
    ]) {
      const source = file('get.json', `{"ids":["a"],"documents":${documents}}`);
      await expect(read(source, { from: 'chroma' })).rejects.toThrow(
        'documents has more or fewer members than ids',
      );
    }
    const source = file(
      'get.json',
      '{"ids":["a"],"documents":null}{"documents":["u"],"ids":["b"],"metadatas":[{"n":1}]}',
    );
    const { sent, problems } = await read(source, { from: 'chroma' });
    expect([JSON.parse(sent), problems]).toEqual([{ b: ['u', { n: 1 }] }, ['1 a: the text is empty']]);
  });

  it('may have the columns of Chroma in any order, and its vectors are metadata by their name', async () => {
    const long = 'word '.repeat(20_000);
    const source = file('get.json', `{"documents":["${long}"],"embeddings":[[0.5,0.25]],"ids":["a"]}`);
    const { sent } = await read(source, { from: 'chroma', metadata: ['embeddings'] });
    expect(JSON.parse(sent)).toEqual({ a: [long, { embeddings: [0.5, 0.25] }] });
  });

  it.each([
    ['qdrant', '{"result":{"points":[{"id":1,"payload":{"text":"t"}}]}}', '"result.points"'],
    ['weaviate', '{"objects":[{"id":"1","properties":{"text":"t"}}]}', '"objects"'],
    ['chroma', '{"ids":["1"],"documents":["t"]}', '"ids"'],
    ['llamaindex', '{"docstore/data":{"1":{"__data__":{"id_":"1","text":"t"}}}}', '"docstore/data"'],
  ] as const)('fails by each value without rows: %s', async (from, page, place) => {
    const source = file('pages.jsonl', `${page}\n{"error":"timeout"}\n${page.replaceAll('1', '2')}\n`);
    const { sent, problems } = await read(source, { from });
    expect(JSON.parse(sent)).toEqual({ 1: ['t', {}], 2: ['t', {}] });
    expect(problems).toEqual([`2 undefined: there are no rows: it has no ${place}`]);
  });

  it('is left when the import is stopped, before its first row too', async () => {
    const source = fixture('llamaindex', 'docstore.json');
    const choice = { source, fields: { from: 'llamaindex' } } as const;
    const opened = await openSource(choice, Readable.from([]), AbortSignal.abort('stopped'));
    await expect(rowsOf(opened).next()).rejects.toBe('stopped');
  });

  it('keeps the documents of a docstore from which no node came', async () => {
    const entry = (id: string, more: object): string =>
      `"${id}":{"__data__":${JSON.stringify({ id_: id, text: `text of ${id}`, ...more })},"__type__":"1"}`;
    const entries = [
      entry('cut', { class_name: 'Document' }),
      entry('whole', { class_name: 'Document' }),
      entry('node', { class_name: 'TextNode', relationships: { 1: { node_id: 'cut' } } }),
    ];
    const source = file('docstore.json', `{"docstore/data":{${entries.join()}}}`);
    const { sent } = await read(source, { from: 'llamaindex' });
    expect(Object.keys(JSON.parse(sent))).toEqual(['node', 'whole']);
  });
});

describe('the table of the guide', () => {
  const guide = readFileSync(path.join(repositoryRoot, 'docs/guide/move-here.md'), 'utf8');
  const [, section = ''] = guide.split('## From a library or a store');
  const commands = [
    ...section.matchAll(/`(?:npx maxsimd|npm run maxsimd --) import (\S+) (--from (\w+)[^`]*)`/g),
  ];

  it('has a command for each library', () => {
    expect(new Set(commands.map(([, , , from]) => from))).toEqual(new Set(exportNames));
  });

  it.each(commands.map(([, name, options, from]) => [`${from} ${name}`, { name, options, from }] as const))(
    'imports what the library wrote: %s',
    async (_title, { name, options, from }) => {
      const source = fixture(from as ExportName, name!);
      const state = path.join(stage.directory, 'state');
      const { document } = await importFrom(source, ...options!.split(' '), '--state', state);
      expect(document.error).toBeUndefined();
      expect(document.done).toBeGreaterThanOrEqual(3);
      expect([...stage.api.documents.values()].map(({ text }) => text)).toEqual(
        expect.arrayContaining([bees, whale, bridges]),
      );
    },
  );
});
