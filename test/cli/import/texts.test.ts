/** Folders of texts and Markdown, ids of the content, the fields that an import reports first, and dry runs. */
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { start } from '../../support/commands/command-process.ts';
import { runHere } from '../../support/commands/command-here.ts';
import { useImportStage } from './import-stage.ts';

const stage = useImportStage('notes');
const { file, importFrom, expectRefused } = stage;

describe('a folder of texts', () => {
  it('has a document for each file, with its path as id and its front matter as metadata', async () => {
    file('a.md', '\uFEFF---\ntitle: Bees\ntags: [insect, wild]\nyear: 2024\ndraft:\nid: 7\n---\nThey hum.\n');
    file('deep/down/B.MD', '# Ducks\nThey swim.\n');
    file('deep/plain.txt', '---\nnot: front matter\n---\n');
    file('.git/c.md', 'hidden');
    file('image.png', 'no text');
    mkdirSync(path.join(stage.directory, 'folder.md'));
    symlinkSync('nowhere', path.join(stage.directory, 'link.md'));
    const { document, exitCode } = await importFrom(stage.directory);
    expect(exitCode).toBe(0);
    expect(Object.fromEntries(stage.api.documents)).toEqual({
      'a.md': {
        text: 'Bees They hum.\n',
        metadata: { title: 'Bees', tags: ['insect', 'wild'], year: 2024, id: 7 },
      },
      'deep/down/B.MD': { text: '# Ducks\nThey swim.\n', metadata: {} },
      'deep/plain.txt': { text: '---\nnot: front matter\n---\n', metadata: {} },
    });
    expect(document).toMatchObject({
      done: 3,
      files_skipped: { '.png': 1 },
      fields: {
        id: ['doc_id'],
        text: ['title', 'text'],
        metadata: { title: ['string'], tags: ['array'], year: ['number'], id: ['number'] },
        rows: 3,
        rows_total: 3,
      },
    });
  });

  it('has Markdown and plain text under every usual ending, and counts all other files', async () => {
    const markdown = ['a.markdown', 'a.mdown', 'a.mdx', 'a.mkd', 'a.mkdn', 'a.qmd', 'a.Rmd'];
    const plain = ['b.adoc', 'b.asciidoc', 'b.org', 'b.rst', 'b.text'];
    for (const name of [...markdown, ...plain, 'c.tex', 'c.pdf', 'd/c.PDF', 'LICENSE'])
      file(name, '---\nkind: x\n---\nBody\n');
    const { document } = await importFrom(stage.directory);
    expect([...stage.api.documents.keys()].toSorted()).toEqual([...markdown, ...plain].toSorted());
    for (const name of markdown)
      expect(stage.api.documents.get(name)).toEqual({ text: 'Body\n', metadata: { kind: 'x' } });
    expect(document.files_skipped).toEqual({ '.tex': 1, '.pdf': 2, 'no ending': 1 });
    const { stdout } = await runHere(['import', stage.directory, '--index', 'notes'], stage.options);
    expect(stdout).toMatch(/^skipped +files that are not read: \.pdf \(2\), /m);
    await importFrom(path.join(stage.directory, 'a.mdx'));
    expect(stage.api.documents.get('a.mdx')?.metadata).toEqual({ kind: 'x' });
  });

  it('without a text names the other files', async () => {
    file('scan.pdf', 'x');
    const { document } = await importFrom(stage.directory);
    expect(document.error.message).toMatch(/nor \.md or \.txt files or other texts, but \.pdf \(1\)$/);
  });

  it('beside the data of a dataset is counted', async () => {
    file('README.md', 'A card');
    file('notes.md', 'A text');
    file('rows.jsonl', '{"id":"a","text":"b"}\n');
    const { document } = await importFrom(stage.directory);
    expect(document).toMatchObject({ done: 1, files_skipped: { '.md': 1 } });
  });

  it('with a few data files among the texts is one of texts or of data, as the user says', async () => {
    file('README.md', 'An overview');
    file('rules.md', 'A text');
    file('policy.json', '{"id":"policy","text":"strict"}');
    const both =
      /holds texts \(1\), such as rules\.md, and data \(1\), such as policy\.json: --format text .* --format jsonl the data$/;
    await expectRefused(stage.directory, both);
    await importFrom(stage.directory, '--format', 'text');
    expect([...stage.api.documents.keys()].toSorted()).toEqual(['README.md', 'rules.md']);
    stage.api.documents.clear();
    await importFrom(stage.directory, '--format', 'jsonl');
    expect([...stage.api.documents.keys()]).toEqual(['policy']);
    stage.api.requests.length = 0;
    file('more.txt', 'A text');
    file('prices.csv', 'id,text\na,b\n');
    file('third.rst', 'A text');
    await expectRefused(stage.directory, /holds texts \(3\), .* and data \(2\)/);
    file('README.md', '---\nconfigs:\n- data_files: prices.csv\n  config_name: default\n---\n');
    const { document } = await importFrom(stage.directory);
    expect(document).toMatchObject({
      done: 1,
      files_skipped: { '.json': 1, '.md': 1, '.rst': 1, '.txt': 1 },
    });
  });

  it('beside Arrow files says how these can be read', async () => {
    file('data-00000-of-00001.arrow', 'x');
    file('one.md', 'A text');
    file('two.md', 'A text');
    await expectRefused(
      stage.directory,
      /data \(1\), such as data-.*\.arrow: --format text imports the texts, and .* Parquet, .* load_from_disk\(/,
    );
  });

  it('of packed files alone says so', async () => {
    file('notes.zip', 'x');
    await expectRefused(stage.directory, /, but \.zip \(1\): unpack these first$/);
  });

  it('takes a title that is a number or a boolean as a text, and other numbers as --string-fields says', async () => {
    file('a.md', '---\ntitle: 404\nyear: 2024\nversion: 1.10\ndraft: true\n---\nNot found\n');
    file('b.md', '---\ntitle: true\n---\nBody\n');
    await importFrom(stage.directory);
    expect(stage.api.documents.get('a.md')).toEqual({
      text: '404 Not found\n',
      metadata: { title: '404', year: 2024, version: '1.10', draft: true },
    });
    expect(stage.api.documents.get('b.md')?.text).toBe('true Body\n');
    await importFrom(stage.directory, '--string-fields', 'year');
    expect(stage.api.documents.get('a.md')?.metadata).toMatchObject({ year: '2024', draft: true });
    await importFrom(stage.directory, '--string-fields', 'all');
    expect(stage.api.documents.get('a.md')?.metadata).toMatchObject({ year: '2024', draft: 'true' });
  });

  it('has strings of numbers, but no file does whose values have types', async () => {
    const source = file('rows.jsonl', '{"id":"a","text":"b","n":1}\n');
    const { document } = await importFrom(source, '--string-fields', 'all');
    expect(document.error).toMatchObject({
      code: 'usage_error',
      message: expect.stringMatching(
        /^--string-fields is for CSV and the front matter of texts: .*rows\.jsonl itself says/,
      ),
    });
    expect(stage.api.requests).toEqual([]);
  });

  it('names the file and the line of front matter that cannot be read, and imports the others', async () => {
    const broken = file('broken.md', '---\ntitle: T\nkind: a: b\n---\nBody\n');
    const list = file('list.md', '---\n- a\n---\nBody\n');
    const latin = file('latin.txt', Buffer.from('caf\xe9', 'latin1'));
    const empty = file('empty.md', '---\na: 1\n---\n\n');
    file('good.md', 'Body\n');
    const { document, exitCode, stderr } = await importFrom(stage.directory);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`${broken}:3: cannot understand the front matter: `);
    expect(document).toMatchObject({
      done: 1,
      failed: 4,
      failures: [
        { file: broken, line: 3 },
        { file: empty, line: 1, doc_id: 'empty.md', error: 'the text is empty' },
        { file: latin, line: 1, error: 'not valid UTF-8' },
        { file: list, line: 2, error: 'the front matter is not a list of names and values' },
      ],
    });
  });

  it('beside data files is read where --format text asks for it', async () => {
    file('README.md', 'A text\n');
    file('rows.jsonl', '{"id":"a","text":"b"}\n');
    await importFrom(stage.directory);
    expect([...stage.api.documents.keys()]).toEqual(['a']);
    await importFrom(stage.directory, '--format', 'text');
    expect([...stage.api.documents.keys()]).toEqual(['a', 'README.md']);
  });

  it('may be one file; a field of the front matter may be the id', async () => {
    const source = file('deep/a.md', '---\nslug: bees\n---\nThey hum.\n');
    await importFrom(source);
    await importFrom(source, '--id-field', 'slug');
    expect(Object.fromEntries(stage.api.documents)).toEqual({
      'a.md': { text: 'They hum.\n', metadata: { slug: 'bees' } },
      bees: { text: 'They hum.\n', metadata: { doc_id: 'a.md' } },
    });
  });

  it('without one document is refused with the file and the line', async () => {
    const broken = file('broken.md', '---\n\ta: 1\n---\n');
    const { document } = await importFrom(stage.directory);
    expect(document.error.message).toContain(`; ${broken}:2: cannot understand the front matter: Tabs`);
    expect(stage.api.requests).toEqual([]);
  });

  it('that is empty, and texts on standard input, are refused', async () => {
    const empty = await importFrom(stage.directory);
    expect(empty.document.error.message).toMatch(
      /holds neither corpus\.jsonl .* nor \.md or \.txt files or other texts$/,
    );
    stage.options = { ...stage.options, input: 'text' };
    const input = await importFrom('-', '--format', 'text');
    expect(input.document.error.message).toBe(
      'the id of a text is its path: give its path, not standard input',
    );
    expect(stage.api.requests).toEqual([]);
  });
});

describe('--auto-id', () => {
  it('gives rows without an id one of their text and metadata, and leaves the others', async () => {
    const source = file(
      'rows.jsonl',
      ['{"text":"one"}', '{"text":"one"}', '{"text":"one","n":1}', '{"id":"a","text":"two"}'].join('\n'),
    );
    const first = await importFrom(source, '--auto-id');
    expect(first.document).toMatchObject({
      done: 4,
      repeated_doc_ids: 1,
      fields: { id: [null, 'id'], metadata: { n: ['number'] } },
    });
    const ids = [...stage.api.documents.keys()];
    expect(ids).toEqual([
      expect.stringMatching(/^[0-9a-f]{32}$/),
      expect.stringMatching(/^[0-9a-f]{32}$/),
      'a',
    ]);
    await importFrom(source, '--auto-id');
    expect([...stage.api.documents.keys()]).toEqual(ids);
    const { stderr } = await runHere(['import', source, '--index', 'notes', '--auto-id'], stage.options);
    expect(stderr).toContain('id        made of the content, id\n');
  });

  it('is for CSV without such a column, too, which is refused without it', async () => {
    const source = file('rows.csv', 'text;n\none, two;1\n');
    const refused = await importFrom(source);
    expect(refused.document.error.message).toMatch(/choose one with --id-field NAME, or let --auto-id make/);
    const { document } = await importFrom(source, '--auto-id');
    expect(document).toMatchObject({ done: 1 });
    expect([...stage.api.documents.values()]).toEqual([{ text: 'one, two', metadata: { n: 1 } }]);
  });
});

describe('before it starts, an import', () => {
  it('says what the fields become, with the types of the first rows', async () => {
    const row = (n: number): string =>
      `{"id":${n},"title":"T","text":"t","long":12345678901234567890,"none":null,"flag":true,"deep":{}}\n`;
    const source = file('rows.jsonl', Array.from({ length: 150 }, (_, n) => row(n)).join(''));
    const running = start(['import', source, '--index', 'notes'], stage.options);
    let stderr = '';
    const said = new Promise<void>((resolve) => {
      running.process.stderr!.on('data', (part: Buffer) => {
        stderr += String(part);
        if (stderr.endsWith('\n\n')) resolve();
      });
    });
    // No request is answered before.
    stage.api.intercept = async () => said.then(() => undefined);
    expect(await running.finished).toMatchObject({ exitCode: 0 });
    expect(stderr).toBe(
      `source     ${source}\n` +
        'id         id\n' +
        'text       title, text\n' +
        'metadata   title (string), long (number), none (null), flag (boolean), deep (object)\n' +
        'looked at  the first 100 rows\n\n',
    );
  });

  it('names each type of a field, and the rows that Parquet states', async () => {
    const mixed = file('mixed.jsonl', '{"id":1,"text":"t","m":1}\n{"id":2,"text":"t","m":"1"}\n');
    expect((await importFrom(mixed)).document.fields.metadata).toEqual({ m: ['number', 'string'] });
    const parquet = path.resolve(import.meta.dirname, '../../fixtures/parquet/long.parquet');
    const { document } = await importFrom(parquet, '--dry-run');
    expect(document.fields).toMatchObject({ rows: 100, rows_total: 4100 });
  });
});

describe('a dry run', () => {
  it('reads everything, sends nothing, needs no key, and says what would be refused', async () => {
    const source = file(
      'rows.jsonl',
      [
        ...Array.from({ length: 120 }, (_, n) => JSON.stringify({ id: `d${n}`, text: 't' })),
        'no json',
        JSON.stringify({ id: 'big', text: 't', metadata: { x: 'y'.repeat(16_384) } }),
        `{"id":"deep","text":"t","metadata":${'{"a":'.repeat(17)}1${'}'.repeat(17)}}`,
        JSON.stringify({ id: '..', text: 't' }),
        JSON.stringify({ id: 'half \ud83d', text: 't' }),
        JSON.stringify({ id: 'blank', text: ' \n' }),
      ].join('\n'),
    );
    stage.options = {};
    const { document, exitCode } = await importFrom(source, '--dry-run');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ index: 'notes', dry_run: true, documents: 120, failed: 6 });
    expect(document).not.toHaveProperty('done');
    expect(document.failures.map((item: { error: string }) => item.error)).toEqual([
      'not valid JSON',
      'the metadata has 16392 bytes, 16384 are allowed: --metadata-fields chooses its fields',
      'metadata must nest at most 16 levels',
      'the identifier must not be "." or ".."',
      'the identifier must be well-formed Unicode',
      'the text is empty',
    ]);
    const { stdout } = await runHere(['import', source, '--index', 'notes', '--dry-run'], stage.options);
    expect(stdout).toMatch(
      /^index +notes\ndocuments +120 \(a dry run: nothing was sent\)\nfailed +6\ntime +[\d.]+ s\n$/,
    );
    expect(stage.api.requests).toEqual([]);
  });

  it('of what can all be sent ends with exit code 0', async () => {
    const { exitCode, document } = await importFrom(file('a.txt', 'text'), '--dry-run');
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({ documents: 1, failed: 0 });
    expect(stage.api.requests).toEqual([]);
  });
});
