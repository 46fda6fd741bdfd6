/** What `maxsimd import` takes: CSV, Parquet, standard input, folders of datasets; and what it refuses before anything else. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiDouble } from '../../support/http/api-double.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { run, runJson, type RunOptions } from '../../support/running/command-process.ts';

/** Written by pyarrow 26: three rows in each compression, and 4,100 in two row groups. */
const fixtures = path.resolve(import.meta.dirname, '../../fixtures/parquet');

let api: ApiDouble;
let directory: string;
let options: RunOptions;

beforeEach(async () => {
  api = new ApiDouble();
  directory = await newDirectory();
  options = { environment: { MAXSIMD_URL: await api.listen(), MAXSIMD_API_KEY: 'qkv_live_test' } };
});

afterEach(() => api.close());

function file(name: string, content: string | Buffer): string {
  const whole = path.join(directory, name);
  mkdirSync(path.dirname(whole), { recursive: true });
  writeFileSync(whole, content);
  return whole;
}

const importFrom = (source: string, ...more: string[]): ReturnType<typeof runJson> =>
  runJson(['import', source, '--index', 'books', ...more], options);

/** Nothing was asked of the service. */
async function expectRefused(source: string, message: RegExp, ...more: string[]): Promise<void> {
  const { exitCode, document } = await importFrom(source, ...more);
  expect(document.error.message).toMatch(message);
  expect(exitCode).toBeGreaterThan(0);
  expect(api.requests).toEqual([]);
}

describe('CSV', () => {
  it('has a header, quotes, and cells that become metadata; an empty cell is none', async () => {
    const csv =
      '\uFEFF_id,title,text,year,metadata\r\n' +
      'a,A title,"says ""hello"",\ntwice",1999,"{""kind"":1}"\r\n' +
      'b,,second,,\r\n' +
      'c,,third\r\n' +
      'd,,,,\r\n';
    const source = file('books.csv', csv);
    const { document, exitCode } = await importFrom(source);
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ done: 2, failed: 2, fields_as_metadata: { year: 1 } });
    expect(document.failures).toEqual([
      { file: source, line: 5, doc_id: null, error: 'the line has 3 fields, the header 5' },
      { file: source, line: 6, doc_id: 'd', error: 'the text is empty' },
    ]);
    expect(Object.fromEntries(api.documents)).toEqual({
      a: { text: 'A title says "hello",\ntwice', metadata: { year: '1999', kind: 1 } },
      b: { text: 'second', metadata: {} },
    });
  });

  it.each([
    ['semicolons.csv', 'id;text\na;one, two\n'],
    ['tabs.tsv', 'id\ttext\na\tone, two\n'],
    ['zipped.csv.gz', gzipSync('id,text\na,"one, two"\n')],
  ])('may be %s', async (name, content) => {
    await importFrom(file(name, content));
    expect(api.documents.get('a')?.text).toBe('one, two');
  });

  it('without a column for the text or the id is refused, and other names can be given', async () => {
    const source = file('books.csv', 'key,body\na,one\n');
    await expectRefused(
      source,
      /has no column doc_id, _id, id, but "key", "body": choose one with --id-field NAME/,
    );
    await expectRefused(source, /has no column text, but "key", "body".*--text-field/, '--id-field', 'key');
    const { document } = await importFrom(source, '--id-field', 'key', '--text-field', 'body');
    expect(document).toMatchObject({ done: 1, fields_as_metadata: {} });
    expect(api.documents.get('a')).toEqual({ text: 'one', metadata: {} });
  });

  it.each([
    ['that is empty', '', /is empty/],
    ['with a header alone', 'id,text\n', /holds no document/],
    ['with a column twice', 'id,text,text\na,b,c\n', /names the column "text" twice/],
    ['in another encoding', Buffer.from('id,text\na,caf\xe9\n', 'latin1'), /is not valid UTF-8/],
    ['with an open quote', 'id,text\na,"b\n', /cannot read .*Quote/],
  ])('%s is refused', (_, content, message) => expectRefused(file('books.csv', content), message));
});

describe('Parquet', () => {
  const documents = {
    a: {
      text: 'A title first text',
      metadata: {
        year: 1999,
        published: '2026-01-02T03:04:05.000Z',
        tags: ['x', 'y'],
        author: { name: 'N', age: 7 },
        ratio: 0.5,
        cover: '//4A',
      },
    },
    c: { text: 'third text', metadata: {} },
  };

  it.each(['none', 'snappy', 'gzip', 'zstd', 'brotli'])('with compression %s', async (compression) => {
    const { document } = await importFrom(
      path.join(fixtures, `${compression}.parquet`),
      '--state',
      path.join(directory, 's'),
    );
    expect(document).toMatchObject({ done: 3, failed: 0, fields_as_metadata: { year: 2, cover: 1 } });
    expect(Object.fromEntries(api.documents)).toMatchObject(documents);
  });

  it('is read to the last row, in pieces', async () => {
    cpSync(path.join(fixtures, 'long.parquet'), path.join(directory, 'long.parquet'));
    api.maxConcurrentRequests = 8;
    const { document } = await importFrom(path.join(directory, 'long.parquet'));
    expect(document).toMatchObject({ done: 4100, failed: 0, repeated_doc_ids: 0 });
    expect(api.documents.get('4099')?.text).toBe('text 4');
  });

  it('that is none, is cut off, has no text, is compressed otherwise, or goes by another name is refused', async () => {
    await expectRefused(file('a.parquet', 'id,text\na,b\n'), /cannot read .*a\.parquet/);
    await expectRefused(
      file('b.parquet', 'version https://git-lfs.github.com/spec/v1\n'),
      /pointer of Git LFS/,
    );
    await expectRefused(
      path.join(fixtures, 'long.parquet'),
      /has no column body, but "id", "text"/,
      '--text-field',
      'body',
    );
    await expectRefused(path.join(fixtures, 'lz4.parquet'), /codec: LZ4_RAW; write it with snappy, gzip/);
    cpSync(path.join(fixtures, 'zstd.parquet'), path.join(directory, 'c.jsonl'));
    await expectRefused(path.join(directory, 'c.jsonl'), /is a Parquet file, not jsonl/);
    await expectRefused('-', /give its path, not standard input/, '--format', 'parquet');
  });
});

describe('a JSONL file', () => {
  it.each([
    [
      'that is something else',
      'a book\nof pages\n',
      /holds no document in its first 2 lines; line 1: not valid JSON/,
    ],
    ['that is one array', '[{"id":"a","text":"b"}]', /line 1: not a JSON object/],
    ['that is empty', '\n\n', /holds no document$/],
    ['of objects with other fields', '{"key":"a","body":"b"}\n', /line 1: no doc_id, _id or id .*--id-field/],
  ])('%s is refused', (_, content, message) => expectRefused(file('books.jsonl', content), message));

  it('that is not there is refused', () => expectRefused(path.join(directory, 'nothing'), /does not exist/));
});

describe('standard input', () => {
  it.each([
    ['JSONL', '{"id":"a","text":"b"}\n', []],
    ['gzipped JSONL', gzipSync('{"id":"a","text":"b"}\n'), []],
    ['CSV', 'id,text\na,b\n', ['--format', 'csv']],
  ])('takes %s, and leaves no state behind', async (_, input, more) => {
    options = { ...options, input };
    const { document, exitCode } = await importFrom('-', ...more);
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({ done: 1, failed: 0 });
    expect(api.documents.get('a')?.text).toBe('b');
  });

  it('with nothing on it is refused, and so is a state for it', async () => {
    options = { ...options, input: '' };
    await expectRefused('-', /standard input holds no document/);
    await expectRefused('-', /standard input cannot be read again/, '--state', 'x');
  });
});

describe('fields that a document has no place for', () => {
  const rows =
    '{"id":"a","text":"t","year":1999,"kind":"x","metadata":{"kind":"y"}}\n{"id":"b","text":"t","year":2000}\n';

  it('become metadata, and the end tells which and how often; given metadata goes before', async () => {
    const source = file('books.jsonl', rows);
    const { document } = await importFrom(source);
    expect(document).toMatchObject({ fields_as_metadata: { year: 2 }, fields_left_out: { kind: 1 } });
    expect(api.documents.get('a')?.metadata).toEqual({ year: 1999, kind: 'y' });
    const { stdout } = await run(['import', source, '--index', 'books'], options);
    expect(stdout).toMatch(/^metadata +also the fields year \(2\)$/m);
    expect(stdout).toMatch(/^left out +the fields kind \(1\)$/m);
  });

  it('are left out where they are not among --metadata-fields, and counted too', async () => {
    const { document } = await importFrom(file('books.jsonl', rows), '--metadata-fields', '');
    expect(document).toMatchObject({ fields_as_metadata: {}, fields_left_out: { year: 2, kind: 1 } });
    expect(api.documents.get('b')?.metadata).toEqual({});
  });
});

describe('documents with an id that came before', () => {
  it('are counted and named; the last one stays', async () => {
    const rows = ['a', 'b', 'a', 'a'].map((id, place) => `{"id":"${id}","text":"version ${place}"}\n`);
    const source = file('books.jsonl', rows.join(''));
    const { document } = await importFrom(source);
    expect(document).toMatchObject({ done: 4, repeated_doc_ids: 2 });
    expect(api.documents.get('a')?.text).toBe('version 3');
    const { stdout } = await run(['import', source, '--index', 'books'], options);
    expect(stdout).toMatch(
      /^repeated +2 documents have an id that came before \(a, \.\.\.\): the last one stays$/m,
    );
  });
});
