/** A used data directory whose files do not belong together is refused and not changed. A new directory is never refused. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { copyFile, cp, mkdir, open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { DocumentWriter, newTenant } from '../../support/stages/catalog-fixture.ts';

const source = path.resolve(import.meta.dirname, '../../../src/catalog/sqlite/open-catalog.ts');

let used: string;
let tenants: number;
beforeAll(async () => {
  used = await newDirectory();
  tenants = await addTenant(used);
  // The state that the index store leaves.
  await mkdir(path.join(used, 'segments', 'an index'));
  await writeFile(path.join(used, 'segments', 'an index', '1.seg'), 'a segment');
});

async function addTenant(directory: string): Promise<number> {
  const catalog = await openCatalog({ directory });
  await newTenant(catalog);
  const found = await catalog.listTenants();
  await catalog.close();
  return found.length;
}

async function copyOf(directory: string): Promise<string> {
  const copy = path.join(await newDirectory(), 'data');
  await cp(directory, copy, { recursive: true });
  return copy;
}

/** Every file with its content, without the files that SQLite shares between processes. */
async function contentOf(directory: string): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'))
    .map(({ parentPath, name }) => path.join(parentPath, name))
    .toSorted();
  const content = new Map<string, string>();
  for (const file of files) {
    const bytes = await readFile(file, 'latin1');
    if (bytes !== '' || !file.endsWith('-wal')) content.set(path.relative(directory, file), bytes);
  }
  return content;
}

async function expectRefused(directory: string, message: RegExp): Promise<void> {
  const before = await contentOf(directory);
  for (const mustExist of [false, true]) {
    await expect(openCatalog({ directory, mustExist })).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringMatching(message),
    });
  }
  expect(await contentOf(directory)).toEqual(before);
}

describe('a used data directory', () => {
  it.each([
    [
      'is missing',
      (file: string) => rm(file),
      /catalog\.db is missing, and usage\.db, segments cannot be used/,
    ],
    ['is empty', (file: string) => writeFile(file, ''), /catalog\.db is empty/],
    ['is no database', (file: string) => writeFile(file, 'x'.repeat(8192)), /catalog\.db is damaged/],
    ['has a damaged first page', (file: string) => flip(file, 60), /catalog\.db is damaged/],
  ])('whose catalog %s is refused', async (_what, change, message) => {
    const directory = await copyOf(used);
    await change(path.join(directory, 'catalog.db'));
    await expectRefused(directory, message);
    await copyFile(path.join(used, 'catalog.db'), path.join(directory, 'catalog.db'));
    expect(await addTenant(directory)).toBe(tenants + 1);
  });

  it.each([
    ['is missing', (file: string) => rm(file), /key-pepper is missing/],
    ['is another', (file: string) => writeFile(file, new Uint8Array(32)), /key-pepper is not the one/],
    ['has a flipped bit', (file: string) => flip(file, 7), /key-pepper is not the one/],
    ['is cut', (file: string) => writeFile(file, 'short'), /key-pepper is damaged/],
  ])('whose key pepper %s is refused', async (_what, change, message) => {
    const directory = await copyOf(used);
    await change(path.join(directory, 'key-pepper'));
    await expectRefused(directory, message);
    await copyFile(path.join(used, 'key-pepper'), path.join(directory, 'key-pepper'));
    expect(await addTenant(directory)).toBe(tenants + 1);
  });

  it('whose catalog is another one is refused, until its segments are given up', async () => {
    const [directory, other] = [await copyOf(used), await newDirectory()];
    await addTenant(other);
    for (const name of ['catalog.db', 'key-pepper']) {
      await copyFile(path.join(other, name), path.join(directory, name));
    }
    await expectRefused(
      directory,
      /catalog\.db is not the catalog that the segments belong to.*catalog-mark/,
    );
    await rm(path.join(directory, 'segments', 'catalog-mark'));
    expect(await addTenant(directory)).toBe(2);
  });

  it.each([
    ['no bytes', ''],
    ['zeros', '\0'.repeat(54)],
  ])('whose mark has %s, as a power cut leaves a new one, opens', async (_what, bytes) => {
    const directory = await copyOf(used);
    await writeFile(path.join(directory, 'segments', 'catalog-mark'), bytes);
    expect(await addTenant(directory)).toBe(tenants + 1);
  });

  it('whose catalog is older than its segments is refused, until the mark is removed', async () => {
    const directory = await copyOf(used);
    expect(await addTenant(directory)).toBe(tenants + 1);
    await copyFile(path.join(used, 'catalog.db'), path.join(directory, 'catalog.db'));
    await expectRefused(directory, /catalog\.db is older than the segments: it lacks the last \d+ commits/);
    await rm(path.join(directory, 'segments', 'catalog-mark'));
    expect(await addTenant(directory)).toBe(tenants + 1);
  });

  it('that lost commits to a damaged write-ahead log is refused', async () => {
    const directory = await copyOf(used);
    // A killed process leaves its log, because no close has emptied it.
    const catalog = await openCatalog({ directory });
    const { id } = await newTenant(catalog);
    const documents = await DocumentWriter.start(catalog, id);
    for (const docId of ['a', 'b', 'c', 'd']) await documents.upsert([docId]);
    const killed = await copyOf(directory);
    await catalog.close();
    const log = path.join(killed, 'catalog.db-wal');
    const { length } = await readFile(log);
    expect(length).toBeGreaterThan(10_000);
    const unflip = await flip(log, Math.floor(length / 2));
    await expectRefused(killed, /it lacks the last \d+ commits/);
    await unflip();
    const reopened = await openCatalog({ directory: killed });
    expect(await reopened.countStored(documents.index.id, ['a', 'b', 'c', 'd'])).toBe(4);
    await reopened.close();
  });

  it('is moved and copied like any other', async () => {
    const directory = await copyOf(used);
    const moved = `${directory}-moved`;
    await rename(directory, moved);
    expect(await addTenant(moved)).toBe(tenants + 1);
  });
});

describe('a new data directory', () => {
  it('stays as it is when a catalog was asked for that exists', async () => {
    const directory = await newDirectory();
    for (const place of [directory, path.join(directory, 'missing')]) {
      await expect(openCatalog({ directory: place, mustExist: true })).rejects.toMatchObject({
        code: 'not_found',
      });
    }
    expect(await readdir(directory)).toEqual([]);
  });

  it('may hold a file system of its own for the segments', async () => {
    const directory = await newDirectory();
    await mkdir(path.join(directory, 'segments', 'lost+found'), { recursive: true });
    expect(await addTenant(directory)).toBe(1);
  });

  it('is accepted again wherever its first opening was cut off', async () => {
    const left = new Set<string>();
    for (const changes of [1, 4, 8, 16, 24, 32]) {
      const directory = await newDirectory();
      await openUntil(directory, changes);
      left.add((await readdir(directory)).map((name) => name.replace(/\.[0-9a-f]+\./, '.')).join());
      expect(await addTenant(directory), `after ${changes} changes`).toBe(1);
    }
    expect(left.size).toBeGreaterThan(2);
  });
});

/** Opens a directory in a process that is killed after so many changes in the directory. */
async function openUntil(directory: string, changes: number): Promise<void> {
  const code = `const { openCatalog } = await import(${JSON.stringify(source)});
    const catalog = await openCatalog({ directory: ${JSON.stringify(directory)} });
    await catalog.ping();
    await catalog.close();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: 'inherit',
  });
  const exited = once(child, 'exit');
  let seen = 0;
  const watcher = watch(directory, () => {
    seen += 1;
    if (seen === changes) child.kill('SIGKILL');
  });
  await exited;
  watcher.close();
}

/** Flips a bit. Returns the function that flips it back. */
async function flip(file: string, place: number): Promise<() => Promise<void>> {
  const change = async (): Promise<void> => {
    await using handle = await open(file, 'r+');
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, place);
    await handle.write(Uint8Array.of(buffer[0]! ^ 4), 0, 1, place);
  };
  await change();
  return change;
}
