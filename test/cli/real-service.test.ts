/** The command line against the real service: import, search and eval of a small BEIR directory, and erasure. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { passages } from '../support/running/texts.ts';
import { runJsonHere } from '../support/commands/command-process.ts';
import { runHere, type RunOptions } from '../support/commands/command-here.ts';

let server: ServerProcess;
let tenantId: string;
let client: RunOptions;
let operator: RunOptions;
let beir: string;

beforeAll(async () => {
  server = await startServer({ sharedEncoder: true });
  operator = { environment: { MAXSIMD_DATA_DIR: server.scratch.data } };
  const { document } = await runJsonHere(['tenant', 'create', '--name', 'books'], operator);
  tenantId = document.tenant_id;
  client = { environment: { MAXSIMD_URL: server.url, MAXSIMD_API_KEY: document.api_key } };
  beir = path.join(server.scratch.root, 'beir');
  mkdirSync(beir);
  const file = (name: string, rows: readonly object[]): void =>
    writeFileSync(path.join(beir, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  file(
    'corpus.jsonl',
    passages.map(({ subject, text }) => ({
      _id: `d ${subject}`,
      title: subject,
      text,
      metadata: { subject },
    })),
  );
  file(
    'queries.jsonl',
    passages.map(({ subject, question }) => ({ _id: `q ${subject}`, text: question })),
  );
  const judgements = passages.map(({ subject }) => `q ${subject}\td ${subject}\t1\n`);
  writeFileSync(path.join(beir, 'qrels.tsv'), `query-id\tcorpus-id\tscore\n${judgements.join('')}`);
});

afterAll(async () => {
  await server.stop();
  await server.scratch.remove();
});

describe('the command line and the real service', () => {
  it('import every document, and give each question its passage first', async () => {
    const imported = await runJsonHere(['import', beir, '--index', 'books'], client);
    expect(imported.document).toMatchObject({ done: passages.length, failed: 0, index_created: true });
    // Under the default 60 requests a minute: whatever is over it waits.
    const evaluated = await runJsonHere(['eval', beir, '--index', 'books'], client);
    expect(evaluated.exitCode).toBe(0);
    expect(evaluated.document).toMatchObject({ queries: passages.length, recall_at_100: 1 });
    expect(evaluated.document.ndcg_at_10).toBeGreaterThan(0.95);
  });

  it('find a passage, with filter and components', async () => {
    const [first] = passages;
    const query = [first?.question ?? '', '--filter', JSON.stringify({ subject: first?.subject })];
    const found = await runJsonHere(['search', ...query, '--index', 'books', '--components'], client);
    expect(found.document.results).toMatchObject([
      {
        doc_id: `d ${first?.subject}`,
        metadata: { subject: first?.subject },
        components: { maxsim: expect.any(Number) },
      },
    ]);
  });

  it('keep texts in a field, and show passages of them', async () => {
    const [first] = passages;
    const rows = passages.map(({ subject, text }) => JSON.stringify({ id: subject, text, subject }));
    const file = path.join(server.scratch.root, 'kept.jsonl');
    writeFileSync(file, rows.join('\n'));
    await runJsonHere(['import', file, '--index', 'kept', '--keep-text', 'body'], client);
    const query = ['search', first!.question, '--index', 'kept', '--top-k', '1', '--passage', 'body'];
    const found = await runJsonHere(
      [...query, '--context', '9', '--fields', 'subject', '--components'],
      client,
    );
    expect(found.document.results).toMatchObject([
      {
        metadata: { subject: first!.subject },
        passage: { text: first!.text, start: 0, highlights: expect.arrayContaining([expect.anything()]) },
      },
    ]);
    const shown = await runHere(query, client);
    expect(shown.stdout).toContain(first!.text);
  });

  it('count documents by the values of a field', async () => {
    const [first] = passages;
    const filter = ['--filter', JSON.stringify({ subject: first?.subject })];
    const where = ['--where', '{"subject":{"not":"none"}}', '--limit', '1'];
    const counted = await runJsonHere(['facets', 'subject', '--index', 'books', ...filter, ...where], client);
    expect(counted.document).toEqual({
      documents: 1,
      facets: [{ field: 'subject', distinct: 1, values: [{ value: first?.subject, count: 1 }] }],
    });
  });

  it('merge fields into the metadata of a document, or replace them', async () => {
    const [first] = passages;
    const update = (...args: readonly string[]) =>
      runJsonHere(['document', 'update', `d ${first?.subject}`, '--index', 'books', ...args], client);
    const merged = await update('--metadata-merge', '{"read":true,"o":{"n":1}}');
    expect(merged.document).toMatchObject({ metadata: { subject: first?.subject, read: true, o: { n: 1 } } });
    const replaced = await update('--metadata', JSON.stringify({ subject: first?.subject }));
    expect(replaced.document).toMatchObject({ metadata: { subject: first?.subject } });
    expect(replaced.document.metadata).not.toHaveProperty('read');
  });

  it('count the documents that match in a dry run, and delete them', async () => {
    const { document } = await runJsonHere(['tenant', 'create', '--name', 'deleting'], operator);
    const own = { environment: { MAXSIMD_URL: server.url, MAXSIMD_API_KEY: document.api_key } };
    const source = path.resolve(import.meta.dirname, '../fixtures/parquet/types.parquet');
    await runJsonHere(['import', source, '--index', 'old'], own);
    const remove = ['document', 'delete', '--index', 'old', '--where', '{"day":{"after":"2026-11-26"}}'];
    const counted = await runJsonHere([...remove, '--dry-run'], own);
    expect(counted.document).toEqual({ deleted: 0, matching: 1 });
    const deleted = await runJsonHere([...remove, '--yes'], own);
    expect(deleted.document).toEqual({ deleted: 1 });
    expect((await runJsonHere([...remove, '--yes'], own)).document).toEqual({ deleted: 0, matching: 0 });
  });

  it('find what an import stored by the numbers and dates that the file holds, as they are written', async () => {
    const { document } = await runJsonHere(['tenant', 'create', '--name', 'types'], operator);
    const types = { environment: { MAXSIMD_URL: server.url, MAXSIMD_API_KEY: document.api_key } };
    const source = path.resolve(import.meta.dirname, '../fixtures/parquet/types.parquet');
    const imported = await runJsonHere(['import', source, '--index', 'types'], types);
    expect(imported.document).toMatchObject({ done: 3, failed: 0 });
    for (const filter of [
      '{"price":1234567.89}',
      '{"sum":12345678901234567.89}',
      '{"count":12345678901234567890}',
      '{"serial":1126128864018916581,"long":1126128864018916581}',
      '{"ratio":0.1}',
      '{"day":"2026-11-27","us":"2026-11-27T01:02:03.123456Z"}',
    ]) {
      const found = await runJsonHere(['search', 'one', '--index', 'types', '--filter', filter], types);
      expect(found.document.results, filter).toMatchObject([{ doc_id: '\ufeffx' }]);
    }
    const conditions = ['--where', '{"day":{"after":"2026-11-26"}}', '--by-document', '--exact'];
    const narrowed = await runJsonHere(['search', 'one', '--index', 'types', ...conditions], types);
    expect(narrowed.document.results).toMatchObject([{ doc_id: '\ufeffx', chunks: [{ chunk_index: 0 }] }]);
  });

  it('import a folder of Markdown after a dry run, and find its documents by text and front matter', async () => {
    const { document } = await runJsonHere(['tenant', 'create', '--name', 'notes'], operator);
    const notes = { environment: { MAXSIMD_URL: server.url, MAXSIMD_API_KEY: document.api_key } };
    const folder = path.join(server.scratch.root, 'notes');
    for (const [place, { subject, text }] of passages.entries()) {
      const file = path.join(folder, place % 2 === 0 ? 'even' : 'odd', `${subject}.md`);
      mkdirSync(path.dirname(file), { recursive: true });
      const frontMatter = `title: ${subject}\ntags: [${subject}, all]\nwritten: 2026-11-0${1 + (place % 9)}`;
      writeFileSync(file, `---\n${frontMatter}\n---\n\n# ${subject}\n\n${text}\n`);
    }
    const planned = await runJsonHere(['import', folder, '--index', 'notes', '--dry-run'], notes);
    expect(planned.document).toMatchObject({ documents: passages.length, failed: 0 });
    expect((await runJsonHere(['index', 'list'], notes)).document).toEqual({ data: [] });
    const imported = await runJsonHere(['import', folder, '--index', 'notes'], notes);
    expect(imported.document).toMatchObject({ done: passages.length, failed: 0 });
    const [first] = passages;
    const asked = await runJsonHere(['search', first!.question, '--index', 'notes', '--top-k', '1'], notes);
    expect(asked.document.results).toMatchObject([{ doc_id: `even/${first!.subject}.md` }]);
    const where = JSON.stringify({ tags: { contains: first!.subject }, written: { before: '2026-11-02' } });
    const found = await runJsonHere(['search', 'anything', '--index', 'notes', '--where', where], notes);
    expect(found.document.results).toMatchObject([
      {
        doc_id: `even/${first!.subject}.md`,
        metadata: { title: first!.subject, tags: [first!.subject, 'all'], written: '2026-11-01' },
      },
    ]);
  });

  it('erase a tenant to the last file, the command line alone where no server runs', async () => {
    await server.stop();
    const segments = path.join(server.scratch.data, 'segments');
    expect(readdirSync(segments)).not.toEqual([]);
    const { document } = await runJsonHere(['tenant', 'delete', tenantId, '--yes'], operator);
    expect(document).toEqual({ tenant_id: tenantId, deleted: true, indexes: 2, files_removed: true });
    for (const name of ['types', 'notes', 'deleting'])
      await runJsonHere(['tenant', 'delete', name, '--yes'], operator);
    expect(readdirSync(segments, { recursive: true })).toEqual(['catalog-mark']);
  });
});
