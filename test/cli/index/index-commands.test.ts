/** `maxsimd index ...` as real processes: beside a running server, without one, and over damaged files. */
import { open, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTenant } from '../../support/commands/command-line.ts';
import { connect, type Client } from '../../support/running/client.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';
import { textOfTokens } from '../../support/running/texts.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';
import { runHere, type RunOptions } from '../../support/commands/command-here.ts';

const documents = 40;
/** Several documents of twenty tokens fill a segment. */
const constants = { segmentTokenVectorsMax: 48 };

let server: ServerProcess;
let client: Client;
let key: string;
let indexId: string;
let operator: RunOptions;

beforeAll(async () => {
  server = await startServer({ sharedEncoder: true, constants });
  operator = { environment: { MAXSIMD_DATA_DIR: server.scratch.data } };
  ({ client, key } = await createTenant(server));
  ({ id: indexId } = await makeIndex(client));
  for (let place = 0; place < documents; place += 1) {
    await put(client, indexId, [{ doc_id: `d${place}`, text: textOfTokens(20), metadata: { place } }]);
  }
  for (let place = 0; place < 10; place += 1) await client.deleteDocument(indexId, `d${place}`);
});

afterAll(async () => {
  await server.stop();
  await server.scratch.remove();
});

const directory = (): string => path.join(server.scratch.data, 'segments', indexId);

describe('beside a running server', () => {
  it('inspect tells segments, sizes and waste', async () => {
    const { exitCode, document } = await runJsonHere(['index', 'inspect', indexId], operator);
    expect(exitCode).toBe(0);
    const [index] = document.data;
    expect(index).toMatchObject({ index_id: indexId, status: 'ready', documents: documents - 10 });
    expect(index.waste_bytes).toBeGreaterThan(0);
    expect(index.segments.length).toBeGreaterThan(1);
    for (const segment of index.segments) {
      expect(segment).toMatchObject({ problem: null, dim: expect.any(Number) });
      expect(segment.file_bytes).toBeGreaterThan(
        (segment.token_vectors * segment.dim * segment.row_bits) / 8,
      );
      if (segment.state === 'active') continue;
      expect(segment.derived).toEqual([{ name: 'postings', bytes: expect.any(Number) }]);
      expect(segment).toMatchObject({ columns: 0, column_bytes: 0 });
      expect(segment.filter_terms).toBe(segment.records);
    }
    expect(index.derived_bytes).toBeGreaterThan(0);
    // Segments as small as these have no codes.
    expect(index).toMatchObject({
      candidate_plan: 'exact',
      candidate_plan_reason: 'there are no codes (yet)',
    });
    const [{ dim, row_bits: rowBits }] = index.segments;
    expect(index.disk_bytes_per_token_vector).toBeGreaterThan((dim * rowBits) / 8);
    expect(index.memory_bytes_per_token_vector).toBeGreaterThan(0);
    expect(index.memory_bytes_per_token_vector).toBeLessThan(index.disk_bytes_per_token_vector);
    const live = index.segments.reduce((sum: number, segment: { live: number }) => sum + segment.live, 0);
    expect(live).toBe(documents - 10);
    const { data: named } = (await runJsonHere(['index', 'inspect', index.name], operator)).document;
    expect(named).toEqual([expect.objectContaining({ index_id: indexId })]);
    const text = await runHere(['index', 'inspect'], operator);
    expect(text.stdout).toContain(indexId);
    expect(text.stdout).toMatch(/^candidates +exact: there are no codes/m);
    expect(text.stdout).toMatch(/^segment +state +records +live +chunks/m);
  });

  it('verify reads every record and finds nothing', async () => {
    const { exitCode, document } = await runJsonHere(['index', 'verify'], operator);
    expect(document).toMatchObject({ indexes: 1, problems: [] });
    expect(document.records).toBeGreaterThanOrEqual(documents - 10);
    expect(exitCode).toBe(0);
  });

  it('compact is refused and changes nothing', async () => {
    const before = await readdir(directory());
    const { exitCode, document } = await runJsonHere(['index', 'compact', indexId], operator);
    expect(exitCode).toBe(1);
    expect(document.error.message).toMatch(/another server uses the data directory/);
    expect(await readdir(directory())).toEqual(before);
  });

  it('an index that does not exist is not found', async () => {
    const unknown = '00000000-0000-4000-8000-000000000000';
    const { exitCode, document } = await runJsonHere(['index', 'inspect', unknown], operator);
    expect(exitCode).toBe(1);
    expect(document.error.code).toBe('not_found');
  });
});

describe('without a server', () => {
  it('compact leaves one segment without waste, which a server serves as before', async () => {
    const query = { query: textOfTokens(5), top_k: 100 };
    const before = await find(client, indexId, query);
    await server.stop();
    const { exitCode, document } = await runJsonHere(['index', 'compact', indexId], operator);
    expect(document).toMatchObject({ data: [{ index_id: indexId, segments_after: 1 }] });
    expect(document.data[0].bytes_after).toBeLessThan(document.data[0].bytes_before);
    expect(exitCode).toBe(0);
    const inspected = await runJsonHere(['index', 'inspect', indexId], operator);
    expect(inspected.document.data[0]).toMatchObject({ waste_bytes: 0, documents: documents - 10 });
    expect((await readdir(directory())).filter((name) => name.endsWith('.seg'))).toHaveLength(1);
    expect((await runHere(['index', 'verify'], operator)).exitCode).toBe(0);

    server = await startServer({ scratch: server.scratch, sharedEncoder: true, constants });
    client = connect(server.url, key);
    const after = await find(client, indexId, query);
    expect(after.results).toEqual(before.results);
    await server.stop();
  });

  it('inspect tells the number and the bytes of columns', async () => {
    const inspected = async () =>
      (await runJsonHere(['index', 'inspect', indexId], operator)).document.data[0];
    const before = await inspected();
    const segment = (await readdir(directory())).find((name) => name.endsWith('.seg'));
    const files = ['0'.repeat(16), '1'.repeat(16)].map((hash) =>
      path.join(directory(), `${segment}.columns-${hash}`),
    );
    for (const file of files) await writeFile(file, Buffer.alloc(1_000_000));
    await writeFile(`${files[0]}.tmp`, 'cut short');
    const after = await inspected();
    expect(after.derived_bytes).toBe(before.derived_bytes + 2_000_000);
    expect(after.segments).toEqual([{ ...before.segments[0], columns: 2, column_bytes: 2_000_000 }]);
    const text = await runHere(['index', 'inspect', indexId], operator);
    expect(text.stdout).toMatch(/postings \S+ MiB, 2 columns 1\.9 MiB \(\d+ filter terms\)/);
    for (const file of [...files, `${files[0]}.tmp`]) await rm(file);
  });

  it('verify names a damaged column and fails, and a column that is not whole belongs to nothing', async () => {
    const segment = (await readdir(directory())).find((name) => name.endsWith('.seg'));
    const column = `${segment}.columns-0123456789abcdef`;
    await writeFile(path.join(directory(), column), 'damaged');
    await writeFile(path.join(directory(), `${column}.tmp`), 'cut short');
    const { exitCode, document } = await runJsonHere(['index', 'verify'], operator);
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({
      problems: [{ index_id: indexId, file: `${indexId}/${column}`, problem: expect.stringMatching(/./) }],
      unreferenced_files: [`${indexId}/${column}.tmp`],
    });
    for (const file of [column, `${column}.tmp`]) await rm(path.join(directory(), file));
    expect((await runHere(['index', 'verify'], operator)).exitCode).toBe(0);
  });

  it.each([
    ['record', '.seg', 4096, /record \d+ is damaged/],
    ['footer', '.seg', -100, /damaged footer/],
    ['header', '.seg', 20, /damaged segment header/],
    ['format', '.seg', 8, /segment format \d+ is not supported/],
    ['directory of postings', '.postings', 64, /damaged directory/],
    ['format of postings', '.postings', 8, /postings format \d+ is not supported/],
  ])('verify names a damaged %s and fails', async (_what, ending, place, message) => {
    const name = (await readdir(directory())).find((file) => file.endsWith(ending)) ?? '';
    const restore = await flipByte(path.join(directory(), name), place);
    const { exitCode, document } = await runJsonHere(['index', 'verify'], operator);
    expect(exitCode).toBe(1);
    expect(document.problems).toMatchObject([
      { index_id: indexId, file: `${indexId}/${name}`, problem: expect.stringMatching(message) },
    ]);
    expect((await runHere(['index', 'verify', indexId], operator)).stdout).toMatch(message);
    await restore();
    expect((await runHere(['index', 'verify'], operator)).exitCode).toBe(0);
  });
});

describe('the usage ledger', () => {
  it('is named by verify when it is damaged, and after it was set aside by a server', async () => {
    const file = path.join(server.scratch.data, 'usage.db');
    // A page that the log has, too, would be read from there.
    const ledger = new Database(file);
    ledger.pragma('wal_checkpoint(TRUNCATE)');
    ledger.close();
    await flipByte(file, 1);
    const damaged = await runJsonHere(['index', 'verify'], operator);
    expect(damaged.exitCode).toBe(1);
    expect(damaged.document.problems).toMatchObject([{ index_id: '', file: 'usage.db' }]);
    expect((await runHere(['index', 'verify', indexId], operator)).exitCode).toBe(0);
    server = await startServer({ scratch: server.scratch, sharedEncoder: true, constants });
    expect(server.output().stderr).toMatch(/"level":"warn".*usage ledger is damaged: it was set aside/);
    await find(connect(server.url, key), indexId, { query: textOfTokens(5) });
    await server.stop();
    const after = await runJsonHere(['index', 'verify'], operator);
    expect(after.document.problems).toMatchObject([
      { file: expect.stringMatching(/^usage\.db\.damaged-/), problem: expect.stringMatching(/set aside/) },
    ]);
    for (const name of await readdir(server.scratch.data)) {
      if (name.startsWith('usage.db.damaged-')) await rm(path.join(server.scratch.data, name));
    }
    expect((await runHere(['index', 'verify'], operator)).exitCode).toBe(0);
  });
});

/** Changes one byte (from the end when negative); the result puts it back. */
async function flipByte(name: string, place: number): Promise<() => Promise<void>> {
  const change = async (): Promise<void> => {
    await using file = await open(name, 'r+');
    const { size } = await file.stat();
    const at = place < 0 ? size + place : place;
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
    await file.write(Uint8Array.of(buffer[0]! ^ 0x55), 0, 1, at);
  };
  await change();
  return change;
}
