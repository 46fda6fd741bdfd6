/** Files of columns in a directory and in the cache of a node, as the engine writes them, with segments that go meanwhile. */
import { readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { uncacheSegment } from '../../../src/index/cluster/segment-objects.ts';
import type { ColumnFiles } from '../../../src/index/engine/native.ts';
import { keepColumns, type ColumnStore } from '../../../src/index/segments/column-files.ts';
import { columnsPrefix, segmentOfColumn } from '../../../src/index/segments/derived-data.ts';
import { removeBlobs } from '../../../src/index/storage/blob-store.ts';
import { openBlobCache } from '../../../src/index/storage/local-blob-cache.ts';
import { openLocalBlobStore } from '../../../src/index/storage/local-blob-store.ts';
import type { ObjectStore } from '../../../src/index/storage/object-store.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const blob = 'index/7.seg';
const [first, second, third] = ['0', '1', '2'].map((digit) => columnsPrefix + digit.repeat(16)) as [
  string,
  string,
  string,
];
const open = { blob, isOpen: () => true };
const gone = { blob, isOpen: () => false };

interface Place {
  readonly store: ColumnStore & { create(name: string): Promise<string> };
  readonly folder: string;
}

const fail = (what?: unknown): never => {
  throw new Error('the cache failed', { cause: what });
};

/** A cache neither puts nor gets a column. */
const objects: ObjectStore = {
  putFile: fail,
  getFile: fail,
  readPart: fail,
  remove: fail,
  ping: fail,
  close: () => undefined,
};

async function openCache() {
  return await openBlobCache({ directory: await newDirectory(), objects, bytesMax: 1_000, onError: fail });
}

const kinds: Readonly<Record<string, () => Promise<Place['store']>>> = {
  'a directory': async () => await openLocalBlobStore(await newDirectory()),
  'the cache of a node': openCache,
};

/** A store with the segment and another one, whose column stays. */
async function openPlace(kind: keyof typeof kinds): Promise<Place> {
  const store = await kinds[kind]!();
  for (const name of [blob, 'index/77.seg', `index/77.seg${first}`])
    await writeFile(await store.create(name), 'whole');
  return { store, folder: path.dirname(await store.create(blob)) };
}

/** Writes files as the engine does. */
async function write({ folder }: Place, files: ColumnFiles): Promise<ColumnFiles> {
  for (const ending of files.written) await writeFile(path.join(folder, `7.seg${ending}`), 'column');
  return files;
}

/** The endings of files beside the segment, in order. */
async function beside({ folder }: Place): Promise<readonly string[]> {
  const names = await readdir(folder);
  for (const kept of ['7.seg', '77.seg', `77.seg${first}`]) expect(names).toContain(kept);
  return names.flatMap((name) => (name.startsWith('7.seg.') ? [name.slice('7.seg'.length)] : [])).toSorted();
}

describe.each(Object.keys(kinds))('columns in %s', (kind) => {
  it('are kept, and surplus ones go', async () => {
    const place = await openPlace(kind);
    await keepColumns(place.store, open, () => write(place, { written: [first, second], surplus: [] }));
    expect(await beside(place)).toEqual([first, second]);
    await keepColumns(place.store, open, () => write(place, { written: [third], surplus: [first] }));
    expect(await beside(place)).toEqual([second, third]);
  });

  it('that were removed before they were kept are no error', async () => {
    const place = await openPlace(kind);
    await keepColumns(place.store, open, async () => {
      const files = await write(place, { written: [first, second], surplus: [third] });
      await rm(path.join(place.folder, `7.seg${first}`));
      return files;
    });
    expect(await beside(place)).toEqual([second]);
  });

  it('go with a segment that goes while they are written', async () => {
    const place = await openPlace(kind);
    await keepColumns(place.store, gone, () => write(place, { written: [first], surplus: [] }));
    expect(await beside(place)).toEqual([]);
  });

  it('that could not be written leave nothing of a segment that has gone', async () => {
    const place = await openPlace(kind);
    const full = Object.assign(new Error('full'), { code: 'no_space' });
    const save = async () => {
      await write(place, { written: [first, `${second}.tmp`], surplus: [] });
      throw full;
    };
    await expect(keepColumns(place.store, open, save)).rejects.toBe(full);
    expect(await beside(place)).toEqual([first, `${second}.tmp`]);
    await expect(keepColumns(place.store, gone, save)).rejects.toBe(full);
    expect(await beside(place)).toEqual([]);
  });
});

it('a segment that leaves a directory takes its columns with it', async () => {
  const place = await openPlace('a directory');
  await write(place, { written: [first, second, `${third}.tmp`], surplus: [] });
  await removeBlobs(place.store, blob);
  expect((await readdir(place.folder)).toSorted()).toEqual(['77.seg', `77.seg${first}`]);
});

it('a segment that leaves the cache of a node takes its columns with it', async () => {
  const place = await openPlace('the cache of a node');
  await write(place, { written: [first, second, `${third}.tmp`], surplus: [] });
  await uncacheSegment(place.store, blob);
  expect((await readdir(place.folder)).toSorted()).toEqual(['77.seg', `77.seg${first}`]);
  await uncacheSegment(place.store, 'other/7.seg');
});

it('columns in the cache of a node count from the moment that they are kept', async () => {
  const cache = await openCache();
  const place = { store: cache, folder: path.dirname(await cache.create(blob)) };
  await keepColumns(cache, open, () => write(place, { written: [first, second], surplus: [] }));
  expect(cache.statistics).toMatchObject({ files: 2, bytes: 2 * 'column'.length });
});

it.each([
  [`${blob}${first}`, blob],
  [`index/0a-f.seg${first}`, 'index/0a-f.seg'],
  [`${blob}${first}.tmp`, undefined],
  [`${blob}${first}0`, undefined],
  [`${blob}${first.slice(1)}`, undefined],
  [`${blob}${columnsPrefix}`, undefined],
  [`${blob}.codes`, undefined],
  [blob, undefined],
])('the name %s is that of a column of %s', (name, segment) => {
  expect(segmentOfColumn(name)).toBe(segment);
});
