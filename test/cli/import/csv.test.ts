/** CSV files: columns, quotation marks, and the types of columns. */
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { runHere } from '../../support/commands/command-here.ts';
import { useImportStage } from './import-stage.ts';

const stage = useImportStage('books');
const { file, importFrom, expectRefused } = stage;

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
    expect(Object.fromEntries(stage.api.documents)).toEqual({
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
    expect(stage.api.documents.get('a')?.text).toBe('one, two');
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
      stage.options = { ...stage.options, input: written('\t') };
      const source = name === '-' ? name : file(name, written('\t'));
      const { document, exitCode } = await importFrom(source, '--format', 'csv');
      expect(exitCode).toBe(0);
      expect(document).toMatchObject({ done: 5, failed: 0, remarks: [] });
      expect([...stage.api.documents].map(([id, { text }]) => [id, text])).toEqual(marks);
    },
  );

  it('with tabs quotes as other CSV does if the header is quoted; otherwise marks around a cell are counted', async () => {
    await importFrom(file('quoted.tsv', '"id"\t"text"\na\t"two\nlines"\n'));
    expect(stage.api.documents.get('a')?.text).toBe('two\nlines');
    const source = file('cell.tsv', 'id\ttext\nb\t"one"\n');
    const { document } = await importFrom(source);
    expect(document.remarks).toEqual([
      {
        remark: expect.stringMatching(/marks around it, which stay/),
        rows: 1,
        places: [{ file: source, line: 2 }],
      },
    ]);
    expect(stage.api.documents.get('b')?.text).toBe('"one"');
  });

  it.each(['file', '-'])('refuses a row with a wrong quotation mark alone, by its line: %s', async (name) => {
    stage.options = { ...stage.options, input: written(',') };
    const source = name === '-' ? name : file('books.csv', written(','));
    const { document, exitCode } = await importFrom(source, '--format', 'csv');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ done: 1, failed: 4 });
    expect(document.failures.map((item: { line: number }) => item.line)).toEqual([2, 3, 4, 5]);
    expect(JSON.stringify(document.failures)).not.toMatch(/He said|Hello|monitor|unclosed/);
    expect([...stage.api.documents.keys()]).toEqual(['5']);
  });

  it('tells which rows quotation marks join', async () => {
    const source = file('books.csv', 'id,text\n1,"two\nlines"\n2,"unclosed\n3,ok\n4,closed"\n5,ok\n');
    const { document } = await importFrom(source);
    expect([...stage.api.documents.keys()]).toEqual(['1', '2', '5']);
    expect(document.remarks).toMatchObject([
      { rows: 1, places: [{ line: 2 }] },
      { rows: 1, places: [{ line: 4 }], remark: expect.stringMatching(/looks like a row/) },
    ]);
    const { stdout } = await runHere(['import', source, '--index', 'books'], stage.options);
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
      expect(stage.api.documents.get('1')).toMatchObject({
        text: '10',
        metadata: { year: 1999, price: 1.5, open: true, code: '007', mixed: '1' },
      });
      expect(stage.api.documents.get('2')?.metadata).toEqual({
        price: -2000,
        open: false,
        code: '12',
        mixed: 'x',
        long: 2,
      });
      const { stdout } = await runHere(['import', source, '--index', 'books'], stage.options);
      expect(stdout).toMatch(
        /^columns +year \(number\), price \(number\), open \(boolean\), code \(string; because of 1 cells/m,
      );
    });

    it('keeps the strings of columns that are named, or of all', async () => {
      const source = file('books.csv', csv);
      const some = await importFrom(source, '--string-fields', 'year, open');
      expect(some.document.column_types).toMatchObject({ price: 'number' });
      expect(stage.api.documents.get('1')?.metadata).toMatchObject({
        year: '1999',
        open: 'true',
        price: 1.5,
      });
      const none = await importFrom(source, '--string-fields', 'all');
      expect(none.document.column_types).toEqual({});
      expect(stage.api.documents.get('1')?.metadata).toMatchObject({
        year: '1999',
        open: 'true',
        price: '1.50',
      });
    });

    it.each(['NA', 'NaN', 'NULL', '-', 'n/a', '#N/A', 'None', ' '])(
      'which %j, a word for no value, leaves as they are',
      async (word) => {
        const source = file(
          'rows.csv',
          `id,text,year,open\n1,bee a,2001,true\n2,bee b,${word},${word}\n3,bee c,2003,False\n`,
        );
        const { document } = await importFrom(source);
        expect(document).toMatchObject({
          done: 3,
          column_types: { year: 'number', open: 'boolean' },
          column_no_values: { year: 1, open: 1 },
          column_exceptions: {},
          column_mixed: {},
        });
        expect([...stage.api.documents.values()].map(({ metadata }) => metadata)).toEqual([
          { year: 2001, open: true },
          {},
          { year: 2003, open: false },
        ]);
      },
    );

    it('in which neither spaces nor a plus sign count', async () => {
      await importFrom(
        file('rows.csv', 'id,text,year,open\n1,a, 2001,true \n2,b,+2002, TRUE\n3,c,-3 ,false\n'),
      );
      expect([...stage.api.documents.values()].map(({ metadata }) => metadata)).toEqual([
        { year: 2001, open: true },
        { year: 2002, open: true },
        { year: -3, open: false },
      ]);
    });

    it('in which country codes and telephone numbers stay strings', async () => {
      const source = file('rows.csv', 'id,text,country,tel,empty\n1,a,DE,+491701,NA\n2,b,NA,+491702,NA\n');
      const { document } = await importFrom(source);
      expect(document.column_types).toEqual({ country: 'string', tel: 'string', empty: 'string' });
      expect(stage.api.documents.get('2')?.metadata).toEqual({ country: 'NA', tel: '+491702', empty: 'NA' });
    });

    it('and the end names the cells that made a column of numbers one of strings, without their text', async () => {
      const rows = Array.from(
        { length: 30 },
        (_, n) => `${n},t,${n % 4 === 1 ? 'secret' : n},${n % 2 === 0}\n`,
      );
      const source = file('rows.csv', `id,text,n,flag\n${rows.join('')}30,t,1,2\n`);
      const { document } = await importFrom(source);
      expect(document).toMatchObject({
        column_types: { n: 'string', flag: 'string' },
        column_mixed: {
          n: { type: 'number', count: 8 },
          flag: { type: 'boolean', count: 1, places: [{ line: 32 }] },
        },
      });
      expect(document.column_mixed.n.places.map(({ line }: { line: number }) => line)).toEqual([
        3, 7, 11, 15, 19,
      ]);
      const { stdout } = await runHere(['import', source, '--index', 'books', '--dry-run'], stage.options);
      expect(stdout).toContain('n (string; because of 8 cells that are no number: ');
      expect(stdout).toMatch(/rows\.csv:19, \.\.\.\), flag/);
      expect(stdout).not.toContain('secret');
    });

    it('and a time to expire may be a word for no value', async () => {
      await importFrom(file('rows.csv', 'id,text,expires_at\n1,a,NULL\n2,b,2099-01-01\n'));
      expect(stage.api.documents.get('1')).toEqual({ text: 'a', metadata: {} });
      expect(stage.api.documents.get('2')).toEqual({ text: 'b', metadata: {} });
    });

    it('that are those of all shards of a dataset', async () => {
      file('shards/data/train-00000-of-00002.csv', 'id,text,code\n1,t,5\n');
      file('shards/data/train-00001-of-00002.csv', 'id,text,code\n2,t,05\n');
      const { document } = await importFrom(path.join(stage.directory, 'shards'));
      expect(document.column_types).toEqual({ code: 'string' });
      expect(stage.api.documents.get('1')?.metadata).toEqual({ code: '5' });
    });

    it('that are those of the first rows of standard input; cells unlike them are counted', async () => {
      const lines = Array.from({ length: 1500 }, (_, n) => `${n},t,${n === 1400 ? 'late' : n}\n`);
      stage.options = { ...stage.options, input: `id,text,n\n${lines.join('')}` };
      const { document } = await importFrom('-', '--format', 'csv');
      expect(document).toMatchObject({
        done: 1500,
        column_types: { n: 'number' },
        column_exceptions: { n: 1 },
      });
      expect(stage.api.documents.get('1399')?.metadata).toEqual({ n: 1399 });
      expect(stage.api.documents.get('1400')?.metadata).toEqual({ n: 'late' });
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
    expect(stage.api.documents.get('a')).toEqual({ text: 'one', metadata: {} });
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
