/** `maxsimd import` takes Parquet, JSONL, standard input and folders of datasets. It refuses other input at once. */
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { runHere } from '../../support/commands/command-here.ts';
import { useImportStage } from './import-stage.ts';

/** Written by pyarrow 26: three rows in each compression, and 4,100 in two row groups. */
const fixtures = path.resolve(import.meta.dirname, '../../fixtures/parquet');

const stage = useImportStage('books');
const { file, importFrom, expectRefused } = stage;

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
      path.join(stage.directory, 's'),
    );
    expect(document).toMatchObject({ done: 3, failed: 0, fields_as_metadata: { year: 2, cover: 1 } });
    expect(Object.fromEntries(stage.api.documents)).toMatchObject(documents);
  });

  it('keeps two ids apart that differ in a byte order mark, and takes metadata that is JSON text', async () => {
    cpSync(path.join(fixtures, 'types.parquet'), path.join(stage.directory, 'types.parquet'));
    const { document } = await importFrom(path.join(stage.directory, 'types.parquet'));
    expect(document).toMatchObject({ done: 3, failed: 0, repeated_doc_ids: 0 });
    expect([...stage.api.documents.keys()]).toEqual(['\ufeffx', 'x', 'y']);
    expect(stage.api.documents.get('\ufeffx')?.metadata).toMatchObject({ kind: 1, day: '2026-11-27' });
  });

  it('fails by its row where an object of a JSON column has a name twice', async () => {
    const bytes = readFileSync(path.join(fixtures, 'types.parquet'));
    const given = '{"long":1126128864018916581}';
    bytes.write('{"long":11261288,"long":916}', bytes.indexOf(given));
    const source = file('twice.parquet', bytes);
    const { document } = await importFrom(source);
    const error = 'cannot read the column "notes": long occurs twice in one object';
    expect(document).toMatchObject({ done: 2, failed: 1, failures: [{ file: source, line: 1, error }] });
  });

  it('is read to the last row, in pieces', async () => {
    cpSync(path.join(fixtures, 'long.parquet'), path.join(stage.directory, 'long.parquet'));
    stage.api.maxConcurrentRequests = 8;
    const { document } = await importFrom(path.join(stage.directory, 'long.parquet'));
    expect(document).toMatchObject({ done: 4100, failed: 0, repeated_doc_ids: 0 });
    expect(stage.api.documents.get('4099')?.text).toBe('text 4');
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
    cpSync(path.join(fixtures, 'zstd.parquet'), path.join(stage.directory, 'c.jsonl'));
    await expectRefused(path.join(stage.directory, 'c.jsonl'), /is a Parquet file, not jsonl/);
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

  it('whose structs miss values, which are listed as null', async () => {
    const { document } = await importFrom(path.join(fixtures, 'structs.parquet'), '--dry-run');
    expect(document).toMatchObject({
      documents: 3,
      fields: {
        metadata: { tags: ['array', 'null'], ratio: ['number', 'null'], author: ['object', 'null'] },
      },
    });
  });

  it('whose identifiers have 128 bits, as polars writes them', async () => {
    const { document } = await importFrom(path.join(fixtures, 'polars.parquet'));
    expect(document).toMatchObject({ done: 2, failed: 0 });
    expect([...stage.api.documents.keys()]).toEqual(['18446744073709551617', '-5']);
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
    expect(stage.api.documents.get('a')?.text).toBe('\uFEFFb');
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
    expect(stage.api.documents.get('a')?.text).toBe('b, ]');
    expect(stage.api.documents.get('c')?.text).toBe('"}');
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

  it('in another packing than gzip is refused with the way out, whatever its name is', async () => {
    const entry = Buffer.alloc(512);
    entry.write('a.jsonl');
    entry.write('ustar', 257);
    const beginnings: Readonly<Record<string, Buffer>> = {
      zst: Buffer.from('28b52ffd04', 'hex'),
      bz2: Buffer.from('BZh91AY'),
      xz: Buffer.from('fd377a585a000004', 'hex'),
      lz4: Buffer.from('04224d1864', 'hex'),
      zip: Buffer.from('PK\x03\x04\x14'),
      '7z': Buffer.from('377abcaf271c0004', 'hex'),
      tar: entry,
      tgz: gzipSync(entry),
    };
    const programs: Readonly<Record<string, string>> = { zst: 'zstd', bz2: 'bzip2', xz: 'xz', lz4: 'lz4' };
    for (const [ending, beginning] of Object.entries(beginnings)) {
      const program = programs[ending];
      const way =
        program === undefined
          ? 'an archive \\(.*\\), which is not read: unpack it'
          : `compressed with ${program}, .* as in ${program} -dk FILE$`;
      for (const name of [`books.jsonl.${ending}`, 'books.jsonl'])
        await expectRefused(file(name, beginning), new RegExp(`${name} is ${way}`));
    }
    stage.options = { ...stage.options, input: beginnings['xz']! };
    await expectRefused('-', /standard input is compressed with xz/);
  });

  it('that is not there is refused', () =>
    expectRefused(path.join(stage.directory, 'nothing'), /does not exist/));
});

describe('standard input', () => {
  it.each([
    ['JSONL', '{"id":"a","text":"b"}\n', []],
    ['a JSON array', '[{"id":"a","text":"b"}]', []],
    ['gzipped JSONL', gzipSync('{"id":"a","text":"b"}\n'), []],
    ['CSV', 'id,text\na,b\n', ['--format', 'csv']],
  ])('takes %s, and leaves no state behind', async (_, input, more) => {
    stage.options = { ...stage.options, input };
    const { document, exitCode } = await importFrom('-', ...more);
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({ done: 1, failed: 0 });
    expect(stage.api.documents.get('a')?.text).toBe('b');
  });

  it('with nothing on it is refused, and so is a state for it', async () => {
    stage.options = { ...stage.options, input: '' };
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
    expect(stage.api.documents.get('a')?.metadata).toEqual({ year: 1999, kind: 'y' });
    const { stdout } = await runHere(['import', source, '--index', 'books'], stage.options);
    expect(stdout).toMatch(/^metadata +also the fields year \(2\)$/m);
    expect(stdout).toMatch(/^left out +the fields kind \(1\)$/m);
  });

  it('are left out where they are not among --metadata-fields, and counted too', async () => {
    const { document } = await importFrom(file('books.jsonl', rows), '--metadata-fields', '');
    expect(document).toMatchObject({ fields_as_metadata: {}, fields_left_out: { year: 2, kind: 1 } });
    expect(stage.api.documents.get('b')?.metadata).toEqual({});
  });
});

describe('documents with a time in expires_at', () => {
  const times = ['2021-06-01T08:00:00Z', '2021-06-01T10:00:00+02:00', '2099-01-01T00:00:00Z', ''];
  const objects = times.map((time, place) => ({
    id: `d${place}`,
    text: 'x bee',
    ...(time !== '' && { expires_at: time }),
  }));
  const first = '---\nexpires_at: 2021-06-01T08:00:00Z\n---\nx bee\n';
  const forms: readonly (readonly [string, string, readonly string[]])[] = [
    ['rows.jsonl', objects.map((row) => JSON.stringify(row)).join('\n'), ['d0 d1', 'd2', 'd3']],
    [
      'rows.csv',
      `id,text,expires_at\n${objects.map((row, place) => `${row.id},x bee,${times[place]}`).join('\n')}\n`,
      ['d0 d1', 'd2', 'd3'],
    ],
    ['a.md', first, ['a.md']],
  ];

  it.each(forms)(
    'expire, and those that follow each other with one time share requests: %s',
    async (name, content, batches) => {
      const source = file(name, content);
      const { document, exitCode } = await importFrom(source, '--concurrency', '1');
      expect(exitCode).toBe(0);
      expect(document).toMatchObject({
        done: batches.join(' ').split(' ').length,
        fields: { expires_at: true, metadata: {} },
        expiring_documents: name === 'a.md' ? 1 : 3,
        expired_documents: name === 'a.md' ? 1 : 2,
        fields_as_metadata: {},
      });
      const sent = stage.api.requests.filter(({ body }) => body?.documents !== undefined);
      expect(
        sent.map(({ path: address, body }) => [
          new URL(address, 'http://host').searchParams.get('expires_at'),
          body.documents.map(({ doc_id: docId }: { doc_id: string }) => docId).join(' '),
        ]),
      ).toEqual(
        batches.map((ids, place) => [
          ['2021-06-01T08:00:00.000Z', '2099-01-01T00:00:00.000Z', null][place],
          ids,
        ]),
      );
      expect(sent.flatMap(({ body }) => body.documents)).not.toContainEqual(
        expect.objectContaining({ expires_at: expect.anything() }),
      );
      const { stdout } = await runHere(['import', source, '--index', 'books', '--dry-run'], stage.options);
      expect(stdout).toMatch(/^expiry +\d documents expire .*; \d of these times are over/m);
    },
  );
});

describe('documents with an id that came before', () => {
  it('are counted and named; the last one stays', async () => {
    const rows = ['a', 'b', 'a', 'a'].map((id, place) => `{"id":"${id}","text":"version ${place}"}\n`);
    const source = file('books.jsonl', rows.join(''));
    const { document } = await importFrom(source);
    expect(document).toMatchObject({ done: 4, repeated_doc_ids: 2 });
    expect(stage.api.documents.get('a')?.text).toBe('version 3');
    const { stdout } = await runHere(['import', source, '--index', 'books'], stage.options);
    expect(stdout).toMatch(
      /^repeated +2 documents have an id that came before \(a, \.\.\.\): the last one stays$/m,
    );
  });
});
