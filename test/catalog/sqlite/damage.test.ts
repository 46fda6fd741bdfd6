/** A damaged `catalog.db` gives the answers that it gave before, or an error. `TEST_SEED` repeats a run. */
import { copyFile, open, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { rounds } from '../../rounds.ts';
import { isDamage, openReader, openWriter, type Connection } from '../../../src/catalog/sqlite/connection.ts';
import { documentOperations } from '../../../src/catalog/sqlite/operations/document-operations.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { readOperations } from '../../../src/catalog/sqlite/reads/read-operations.ts';
import { damage } from '../../support/machine/file-damage.ts';
import { announceRandom } from '../../support/running/random.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { DocumentWriter, newTenant, usageOf } from '../../support/stages/catalog-fixture.ts';

const count = rounds({ short: 50, nightly: 2000 });
const pageBytes = 4096;
const tables = ['tenants', 'api_keys', 'indexes', 'segments', 'usage_months', 'purges', 'catalog'];

interface Stored {
  readonly indexId: string;
  readonly tenantId: string;
  readonly docIds: readonly string[];
  readonly versionIds: readonly number[];
}

let file: string;
let stored: readonly Stored[];
let intact: ReadonlyMap<string, string>;
beforeAll(async () => {
  ({ file, stored } = await newContent());
  intact = (await ask(file)).answers;
});

describe('a damaged catalog', () => {
  it(
    'gives no other answer after any damage',
    async () => {
      const random = announceRandom('damaged catalogs');
      const bytes = await readFile(file);
      const copy = path.join(await newDirectory(), 'catalog.db');
      let detected = 0;
      for (let round = 0; round < count; round += 1) {
        const damaged = damage(random, bytes);
        // SQLite takes an empty file for a new database. A directory with one is refused earlier (`catalog-files.ts`).
        if (damaged.bytes.length === 0) continue;
        for (const log of ['-wal', '-shm']) await rm(copy + log, { force: true });
        await writeFile(copy, damaged.bytes);
        try {
          if (await isFound(copy)) detected += 1;
        } catch (error) {
          throw new Error(damaged.what, { cause: error });
        }
      }
      console.log(`damaged catalogs: ${detected} of ${count} detected`);
      // No question reads a free page.
      expect(detected).toBeGreaterThan(count / 2);
    },
    10_000 + count * 1_000,
  );

  it.each([
    ['cut in the middle of a page', async (copy: string) => truncate(copy, (await sizeOf(copy)) - 1000)],
    ['cut by a page', async (copy: string) => truncate(copy, (await sizeOf(copy)) - pageBytes)],
    ['of which a page lies in the place of another', misplacePage],
    ['that is none', (copy: string) => writeFile(copy, 'x'.repeat(2 * pageBytes))],
  ])('%s is found', async (_what, change) => {
    const copy = path.join(await newDirectory(), 'catalog.db');
    await copyFile(file, copy);
    await change(copy);
    expect(await isFound(copy)).toBe(true);
  });
});

it.each([1, 20, 100])(
  'a catalog whose file lacks %s pages that its log counts on is found',
  async (pages) => {
    const directory = await newDirectory();
    const [running, copy] = ['running.db', 'catalog.db'].map((name) => path.join(directory, name)) as [
      string,
      string,
    ];
    await copyFile(file, running);
    const writer = await openWriter({ path: running, durability: 'process_death', busyTimeoutMs: 100 });
    writer.pragma('user_version = 99');
    // The state that a killed process leaves.
    for (const log of ['', '-wal']) await copyFile(running + log, copy + log);
    writer.close();
    await truncate(copy, (await sizeOf(copy)) - pages * pageBytes);
    expect(await isFound(copy)).toBe(true);
  },
);

it('an index that lost a document without a trace cannot be opened', async () => {
  const copy = path.join(await newDirectory(), 'catalog.db');
  await copyFile(file, copy);
  const writer = await openWriter({ path: copy, durability: 'process_death', busyTimeoutMs: 100 });
  writer.exec('DELETE FROM versions WHERE died = 0 LIMIT 1');
  const { loadIndexState } = readOperations(writer);
  const failures = stored.flatMap(({ indexId }) => {
    try {
      loadIndexState(indexId);
      return [];
    } catch (error) {
      return [isDamage(error)];
    }
  });
  expect(failures).toEqual([true]);
  writer.close();
});

/** Whether any question meets the damage. All others must be answered as before. */
async function isFound(copy: string): Promise<boolean> {
  const { answers, refused } = await ask(copy);
  for (const [question, answer] of answers) expect(answer, question).toBe(intact.get(question));
  expect(answers.size + refused).toBe(intact.size);
  return refused > 0;
}

/** Asks all questions, as a process that has just opened the database. */
async function ask(database: string): Promise<{ answers: ReadonlyMap<string, string>; refused: number }> {
  const answers = new Map<string, string>();
  const asked = questions();
  const connections: Connection[] = [];
  try {
    const writer = await openWriter({ path: database, durability: 'process_death', busyTimeoutMs: 100 });
    connections.push(writer);
    const reader = openReader(database);
    connections.push(reader);
    const operations = { reader, reads: readOperations(reader), writer, writes: documentOperations(writer) };
    for (const [question, answer] of asked) {
      try {
        answers.set(question, JSON.stringify(answer(operations)));
      } catch (error) {
        if (!isDamage(error)) throw error;
      }
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  } finally {
    for (const connection of connections) connection.close();
  }
  return { answers, refused: asked.length - answers.size };
}

interface Operations {
  readonly reader: Connection;
  readonly reads: ReturnType<typeof readOperations>;
  readonly writer: Connection;
  readonly writes: ReturnType<typeof documentOperations>;
}

type Question = readonly [question: string, answer: (operations: Operations) => unknown];

function questions(): readonly Question[] {
  return [
    ...tables.map((table): Question => [
      table,
      ({ reader }) => reader.prepare(`SELECT * FROM ${table}`).raw().all(),
    ]),
    ...stored.flatMap(({ indexId, tenantId, docIds, versionIds }): Question[] => [
      [
        `state of ${indexId}`,
        ({ reads }) => {
          const { generation, segments, versions } = reads.loadIndexState(indexId);
          return [generation, segments, Object.values(versions).map((column) => [...column])];
        },
      ],
      ...groupsOf(versionIds).map((group): Question => [
        `versions ${group.join()}`,
        ({ reads }) => [...reads.resolveVersions(indexId, group)],
      ]),
      ...groupsOf(docIds).flatMap((group): Question[] => [
        [`stored ${indexId} ${group.join()}`, ({ reads }) => reads.countStored(indexId, group)],
        [
          `deletes ${indexId} ${group.join()}`,
          ({ writer, writes }) => {
            writer.exec('BEGIN');
            try {
              return group.map((docId) =>
                writes.commitDelete({ tenantId, indexId, docId, usage: usageOf(tenantId) }),
              );
            } finally {
              if (writer.inTransaction) writer.exec('ROLLBACK');
            }
          },
        ],
      ]),
    ]),
  ];
}

function groupsOf<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const size = 25;
  return Array.from({ length: Math.ceil(items.length / size) }, (_group, at) =>
    items.slice(at * size, (at + 1) * size),
  );
}

/** Stores tenants with keys, and indexes with short and long, live and dead documents. */
async function newContent(): Promise<{ readonly file: string; readonly stored: readonly Stored[] }> {
  const directory = await newDirectory();
  const catalog = await openCatalog({ directory });
  const indexes: Stored[] = [];
  for (const name of ['first', 'second', 'third']) {
    const { id: tenantId } = await newTenant(catalog);
    await catalog.createKey({ id: `key of ${name}`, tenantId, hash: new Uint8Array(32).fill(1) });
    const writer = await DocumentWriter.start(catalog, tenantId);
    const docIds = Array.from({ length: 100 }, (_document, place) => `${name} document ${place}`);
    const versionIds: number[] = [];
    for (const group of groupsOf(docIds)) {
      const metadata = JSON.stringify({ name, text: 'word '.repeat(versionIds.length * 12) });
      versionIds.push(...(await writer.upsert(group, metadata)).map(({ versionId }) => versionId));
    }
    for (const docId of docIds.slice(0, 10)) await writer.delete(docId);
    versionIds.push(...(await writer.upsert(docIds.slice(5, 15))).map(({ versionId }) => versionId));
    indexes.push({ indexId: writer.index.id, tenantId, docIds, versionIds });
  }
  await catalog.close();
  return { file: path.join(directory, 'catalog.db'), stored: indexes };
}

async function sizeOf(copy: string): Promise<number> {
  return (await readFile(copy)).length;
}

/** The damage of a write to the wrong place. */
async function misplacePage(copy: string): Promise<void> {
  await using handle = await open(copy, 'r+');
  const versions = await pageOf(copy, 'versions');
  const { buffer } = await handle.read(Buffer.alloc(pageBytes), 0, pageBytes, (versions - 1) * pageBytes);
  await handle.write(buffer, 0, pageBytes, ((await pageOf(copy, 'versions_live')) - 1) * pageBytes);
}

async function pageOf(copy: string, name: string): Promise<number> {
  const reader = openReader(copy);
  try {
    return reader
      .prepare<[string], number>('SELECT rootpage FROM sqlite_schema WHERE name = ?')
      .pluck()
      .get(name)!;
  } finally {
    reader.close();
  }
}
