/** What `maxsimd import` takes: CSV, Parquet, standard input, folders of datasets; and what it refuses before anything else. */
import { cpSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ApiDouble } from '../../support/http/api-double.ts';
import { runHere, runJsonHere, type RunOptions } from '../../support/running/command-process.ts';
import { startImportStage, writeFile } from './import-stage.ts';

/** Written by pyarrow 26: three rows in each compression, and 4,100 in two row groups. */
const fixtures = path.resolve(import.meta.dirname, '../../fixtures/parquet');

let api: ApiDouble;
let directory: string;
let options: RunOptions;

beforeEach(async () => {
  ({ api, directory, options } = await startImportStage());
});

afterEach(() => api.close());

const file = (name: string, content: string | Buffer): string => writeFile(directory, name, content);

const importFrom = (source: string, ...more: string[]): ReturnType<typeof runJsonHere> =>
  runJsonHere(['import', source, '--index', 'books', ...more], options);

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
      a: { text: 'A title says "hello",\ntwice', metadata: { title: 'A title', year: 1999, kind: 1 } },
      b: { text: 'second', metadata: {} },
    });
  });

  it.each([
    ['semicolons.csv', 'id;text\na;one, two\n'],
    ['tabs.tsv', 'id\ttext\na\tone, two\n'],
    ['zipped.csv.gz', gzipSync('id,text\na,"one, two"\n')],
    ['tabs-and-commas.tsv', 'id\ttext\ta, b, c\na\tone, two\tx\n'],
    ['tabs-and-commas.csv', 'id\ttext\ta, b, c, d\na\tone, two\tx\n'],
    ['named.CSV', 'sep=;\nid;text\na;one, two\n'],
    ['named-by-excel.csv', '\uFEFF"sep=;"\r\nid;text;a,b,c\r\na;one, two;x\r\n'],
    ['named-otherwise.csv', 'sep=|\nid|text\na|one, two\n'],
    ['carriage-returns.csv', 'id;text\ra;one, two\rb;"three\rlines"\r'],
  ])('may be %s', async (name, content) => {
    await importFrom(file(name, content));
    expect(api.documents.get('a')?.text).toBe('one, two');
  });

  const marks = [
    ['1', 'He said "hi"'],
    ['2', '"Hello" he said'],
    ['3', '19" monitor'],
    ['4', '"unclosed'],
    ['5', 'ok'],
  ];
  const written = (separator: string): string =>
    [['id', 'text'], ...marks].map((row) => `${row.join(separator)}\n`).join('');

  it.each(['tabs.tsv', 'tabs.csv', '-'])(
    'with tabs quotes nothing, and keeps quotation marks: %s',
    async (name) => {
      options = { ...options, input: written('\t') };
      const source = name === '-' ? name : file(name, written('\t'));
      const { document, exitCode } = await importFrom(source, '--format', 'csv');
      expect(exitCode).toBe(0);
      expect(document).toMatchObject({ done: 5, failed: 0, remarks: [] });
      expect([...api.documents].map(([id, { text }]) => [id, text])).toEqual(marks);
    },
  );

  it('with tabs quotes as other CSV does if the header is quoted; otherwise marks around a cell are counted', async () => {
    await importFrom(file('quoted.tsv', '"id"\t"text"\na\t"two\nlines"\n'));
    expect(api.documents.get('a')?.text).toBe('two\nlines');
    const source = file('cell.tsv', 'id\ttext\nb\t"one"\n');
    const { document } = await importFrom(source);
    expect(document.remarks).toEqual([
      {
        remark: expect.stringMatching(/marks around it, which stay/),
        rows: 1,
        places: [{ file: source, line: 2 }],
      },
    ]);
    expect(api.documents.get('b')?.text).toBe('"one"');
  });

  it.each(['file', '-'])('refuses a row with a wrong quotation mark alone, by its line: %s', async (name) => {
    options = { ...options, input: written(',') };
    const source = name === '-' ? name : file('books.csv', written(','));
    const { document, exitCode } = await importFrom(source, '--format', 'csv');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ done: 1, failed: 4 });
    expect(document.failures.map((item: { line: number }) => item.line)).toEqual([2, 3, 4, 5]);
    expect(JSON.stringify(document.failures)).not.toMatch(/He said|Hello|monitor|unclosed/);
    expect([...api.documents.keys()]).toEqual(['5']);
  });

  it('tells which rows quotation marks join', async () => {
    const source = file('books.csv', 'id,text\n1,"two\nlines"\n2,"unclosed\n3,ok\n4,closed"\n5,ok\n');
    const { document } = await importFrom(source);
    expect([...api.documents.keys()]).toEqual(['1', '2', '5']);
    expect(document.remarks).toMatchObject([
      { rows: 1, places: [{ line: 2 }] },
      { rows: 1, places: [{ line: 4 }], remark: expect.stringMatching(/looks like a row/) },
    ]);
    const { stdout } = await runHere(['import', source, '--index', 'books'], options);
    expect(stdout).toMatch(
      /^remark +1 rows \(.*books\.csv:4\) have a cell of several lines, one of which looks/m,
    );
  });

  it('counts a line that names what separates the fields', async () => {
    const source = file('books.csv', 'sep=;\nid;text\na;one\nb\n');
    const { document } = await importFrom(source);
    expect(document.failures).toMatchObject([{ line: 4, error: 'the line has 1 fields, the header 2' }]);
  });

  describe('has columns of types', () => {
    const csv =
      'id,text,year,price,open,code,mixed,long\n' +
      '1,10,1999,1.50,true,007,1,1126128864018916581\n' +
      '2,20,,-2e3,False,12,x,2\n';
    const types = {
      year: 'number',
      price: 'number',
      open: 'boolean',
      code: 'string',
      mixed: 'string',
      long: 'number',
    };

    it('numbers where all cells are, booleans where all are; the end tells which', async () => {
      const source = file('books.csv', csv);
      const { document } = await importFrom(source);
      expect(document).toMatchObject({ done: 2, column_types: types, column_exceptions: {} });
      expect(api.documents.get('1')).toMatchObject({
        text: '10',
        metadata: { year: 1999, price: 1.5, open: true, code: '007', mixed: '1' },
      });
      expect(api.documents.get('2')?.metadata).toEqual({
        price: -2000,
        open: false,
        code: '12',
        mixed: 'x',
        long: 2,
      });
      const { stdout } = await runHere(['import', source, '--index', 'books'], options);
      expect(stdout).toMatch(
        /^columns +year \(number\), price \(number\), open \(boolean\), code \(string\)/m,
      );
    });

    it('keeps the strings of columns that are named, or of all', async () => {
      const source = file('books.csv', csv);
      const some = await importFrom(source, '--string-fields', 'year, open');
      expect(some.document.column_types).toMatchObject({ price: 'number' });
      expect(api.documents.get('1')?.metadata).toMatchObject({ year: '1999', open: 'true', price: 1.5 });
      const none = await importFrom(source, '--string-fields', 'all');
      expect(none.document.column_types).toEqual({});
      expect(api.documents.get('1')?.metadata).toMatchObject({ year: '1999', open: 'true', price: '1.50' });
    });

    it('that are those of all shards of a dataset', async () => {
      file('shards/data/train-00000-of-00002.csv', 'id,text,code\n1,t,5\n');
      file('shards/data/train-00001-of-00002.csv', 'id,text,code\n2,t,05\n');
      const { document } = await importFrom(path.join(directory, 'shards'));
      expect(document.column_types).toEqual({ code: 'string' });
      expect(api.documents.get('1')?.metadata).toEqual({ code: '5' });
    });

    it('that are those of the first rows of standard input; cells unlike them are counted', async () => {
      const lines = Array.from({ length: 1500 }, (_, n) => `${n},t,${n === 1400 ? 'late' : n}\n`);
      options = { ...options, input: `id,text,n\n${lines.join('')}` };
      const { document } = await importFrom('-', '--format', 'csv');
      expect(document).toMatchObject({
        done: 1500,
        column_types: { n: 'number' },
        column_exceptions: { n: 1 },
      });
      expect(api.documents.get('1399')?.metadata).toEqual({ n: 1399 });
      expect(api.documents.get('1400')?.metadata).toEqual({ n: 'late' });
    });
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
    ['with an open quote', 'id,text\na,"b\n', /line 2: a quotation mark begins a cell, and none ends it/],
    ['with an open quote in the header', 'id,"text\na,b\n', /the header cannot be read: a quotation mark/],
  ])('%s is refused', (_, content, message) => expectRefused(file('books.csv', content), message));
});

describe('vectors', () => {
  const numbers = JSON.stringify(Array.from({ length: 384 }, (_, place) => place / 8));

  it.each([
    ['rows.jsonl', `{"id":"a","text":"one","embedding":${numbers}}\n`],
    ['rows.json', `[{"id":"a","text":"one","embedding":${numbers}}]`],
    ['rows.csv', `id,text,embedding\na,one,"${numbers}"\n`],
  ])('of %s are left out, counted, and kept if they are asked for', async (name, content) => {
    const source = file(name, content);
    const { document } = await importFrom(source);
    expect(document).toMatchObject({ done: 1, arrays_left_out: { embedding: 1 }, fields_as_metadata: {} });
    expect(api.documents.get('a')).toEqual({ text: 'one', metadata: {} });
    const { stdout } = await runHere(['import', source, '--index', 'books'], options);
    expect(stdout).toMatch(
      /^arrays +left out, because they hold more than 64 numbers: embedding \(1\); --metadata-fields keeps/m,
    );
    await importFrom(source, '--metadata-fields', 'embedding');
    expect(api.documents.get('a')?.metadata).toHaveProperty('embedding');
  });
});

describe('Parquet', () => {
  const documents = {
    a: {
      text: 'A title first text',
      metadata: {
        year: 1999,
        published: '2026-01-02T03:04:05.000000Z',
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

  it('keeps two ids apart that differ in a byte order mark, and takes metadata that is JSON text', async () => {
    cpSync(path.join(fixtures, 'types.parquet'), path.join(directory, 'types.parquet'));
    const { document } = await importFrom(path.join(directory, 'types.parquet'));
    expect(document).toMatchObject({ done: 3, failed: 0, repeated_doc_ids: 0 });
    expect([...api.documents.keys()]).toEqual(['\ufeffx', 'x', 'y']);
    expect(api.documents.get('\ufeffx')?.metadata).toMatchObject({ kind: 1, day: '2026-11-27' });
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

  it('whose identifiers are bytes of no type is refused by the name of the column', async () => {
    const bytes = path.join(fixtures, 'bytes.parquet');
    await expectRefused(
      bytes,
      /bytes\.parquet: the column "id" holds bytes without a type.*--id-field NAME$/,
    );
    const { document } = await importFrom(bytes, '--id-field', 'text');
    expect(document).toMatchObject({ done: 1, failed: 0 });
  });

  it('whose identifiers have 128 bits, as polars writes them', async () => {
    const { document } = await importFrom(path.join(fixtures, 'polars.parquet'));
    expect(document).toMatchObject({ done: 2, failed: 0 });
    expect([...api.documents.keys()]).toEqual(['18446744073709551617', '-5']);
  });
});

describe('a JSONL file', () => {
  it.each([
    [
      'that is something else',
      'a book\nof pages\n',
      /holds no document in its first 2 lines; line 1: not valid JSON/,
    ],
    ['of lines that are no objects', '5\n', /line 1: not a JSON object/],
    ['that is an empty array', ' [ ] ', /holds no document$/],
    ['that is an array cut off', '[{"id":"a","text":5},{"id":"b"', /ends within the array$/],
    ['that goes on after its array', '[{"id":"a","text":5}]\n{}', /text follows the end of the array$/],
    ['that is empty', '\n\n', /holds no document$/],
    ['of objects with other fields', '{"key":"a","body":"b"}\n', /line 1: no doc_id, _id or id .*--id-field/],
  ])('%s is refused', (_, content, message) => expectRefused(file('books.jsonl', content), message));

  it('may begin with a byte order mark', async () => {
    const { document } = await importFrom(file('books.jsonl', '\uFEFF{"id":"a","text":"\uFEFFb"}\n'));
    expect(document).toMatchObject({ done: 1, failed: 0 });
    expect(api.documents.get('a')?.text).toBe('\uFEFFb');
  });

  it.each([
    ['in one line', '[{"id":"a","text":"b, ]"},{"id":"c","text":"\\"}"},7]'],
    ['with an element in each line', '\uFEFF[\n{"id":"a","text":"b, ]"},\n{"id":"c","text":"\\"}"},\n7\n]\n'],
    ['gzipped', gzipSync(' [{"id":"a","text":"b, ]"} , {"id":"c","text":"\\"}"},7]')],
  ])('may be one array, %s', async (_, content) => {
    const source = file('books.json', content);
    const { document } = await importFrom(source);
    expect(document).toMatchObject({
      done: 2,
      failed: 1,
      failures: [{ file: source, line: 3, error: 'not a JSON object' }],
    });
    expect(api.documents.get('a')?.text).toBe('b, ]');
    expect(api.documents.get('c')?.text).toBe('"}');
  });

  it.each([
    ['lines', '{"id":"a","text":"b"}\n{"id":"c","text":"d","x":{"y":1,"y":2}}\n'],
    ['one array', '[{"id":"a","text":"b"},{"id":"c","text":"d","x":{"y":1,"y":2}}]'],
  ])('of %s fails by its line where an object has a name twice', async (_, content) => {
    const source = file('books.json', content);
    const { document } = await importFrom(source);
    const failure = { file: source, line: 2, error: 'x.y occurs twice in one object' };
    expect(document).toMatchObject({ done: 1, failed: 1, failures: [failure] });
  });

  it('that is not there is refused', () => expectRefused(path.join(directory, 'nothing'), /does not exist/));
});

describe('standard input', () => {
  it.each([
    ['JSONL', '{"id":"a","text":"b"}\n', []],
    ['a JSON array', '[{"id":"a","text":"b"}]', []],
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
    const { stdout } = await runHere(['import', source, '--index', 'books'], options);
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
    const { stdout } = await runHere(['import', source, '--index', 'books'], options);
    expect(stdout).toMatch(
      /^repeated +2 documents have an id that came before \(a, \.\.\.\): the last one stays$/m,
    );
  });
});
