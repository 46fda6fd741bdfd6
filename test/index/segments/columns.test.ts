/** Files of columns: when they are written and read, that they hold what the catalog holds, and that they go when they should. */
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { engineError } from '../../support/stages/faults.ts';
import { documentAt, openStage, type Stage } from '../../support/stages/index-stage.ts';
import { useHost } from '../../support/stages/use-host.ts';

const host = useHost();

/** A segment is full with eight documents, and has codes then. */
const settings = { segmentTokenVectorsMax: 8, codesTokenVectorsMin: 1, sealedSegmentsMax: 100 };
const ranges = ['{"year":{"gt":2003}}', '{"tags":{"contains":"even"}}', '{"at":{"after":"2026-01-09"}}'];

const metadataOf = (place: number): object => ({
  year: 2000 + place,
  tags: place % 2 === 0 ? ['even', 'any'] : ['any'],
  at: `2026-01-${String(place + 1).padStart(2, '0')}`,
  name: `secret-${place}`,
});

const idOf = (place: number): string => `d${String(place).padStart(2, '0')}`;

const idsOf = (places: readonly number[]): readonly string[] => places.map(idOf);

const wanted = (places: readonly number[]): readonly (readonly string[])[] => [
  idsOf(places.filter((place) => place > 3)),
  idsOf(places.filter((place) => place % 2 === 0)),
  idsOf(places.filter((place) => place > 8)),
];

async function upsert(stage: Stage, places: readonly number[]): Promise<void> {
  for (const place of places) {
    const metadataText = JSON.stringify(metadataOf(place));
    await stage.upsert([{ ...documentAt(idOf(place), place), metadataText }]);
  }
}

async function answers(stage: Stage): Promise<readonly (readonly string[])[]> {
  const found = [];
  for (const range of ranges) found.push(await stage.matching(range));
  return found;
}

async function filesOf(stage: Stage): Promise<readonly string[]> {
  const blobs = await stage.blobs.list(`${stage.indexId}/`);
  return blobs.map(({ name }) => name).filter((name) => name.includes('.columns-'));
}

/** Asks with a catalog that gives no metadata. */
async function answersFromFiles(stage: Stage): Promise<readonly (readonly string[])[]> {
  stage.faults.set('readMetadata', engineError('io'));
  try {
    return await answers(stage);
  } finally {
    stage.faults.delete('readMetadata');
  }
}

const places = Array.from({ length: 16 }, (_, place) => place);

/** An index of two sealed segments whose three fields have been compared. */
async function openFull(): Promise<Stage> {
  const stage = await openStage(host, settings);
  await upsert(stage, places);
  await stage.index().maintain();
  expect(await answers(stage)).toEqual(wanted(places));
  await expect.poll(() => filesOf(stage)).toHaveLength(6);
  return stage;
}

describe('columns of sealed segments with codes', () => {
  it('are files from the first use on, which a restart reads in place of the catalog', async () => {
    await using stage = await openFull();
    await stage.reopen();
    expect(await answersFromFiles(stage)).toEqual(wanted(places));
    expect(stage.errors).toEqual([]);
  });

  it('are copied by a merge, without the values of documents that are gone', async () => {
    await using stage = await openFull();
    expect(await stage.matching('{"name":{"gte":"secret-1"}}')).toHaveLength(15);
    await stage.remove(idOf(5));
    await stage.index().mergeAll();
    const left = places.filter((place) => place !== 5);
    expect(await answersFromFiles(stage)).toEqual(wanted(left));
    await expect.poll(() => filesOf(stage)).toHaveLength(4);
    const bytes = await Promise.all(
      (await filesOf(stage)).map(async (name) =>
        (await readFile(await stage.blobs.open(name))).toString('latin1'),
      ),
    );
    expect(bytes.some((text) => text.includes('secret-6'))).toBe(true);
    expect(bytes.some((text) => text.includes('secret-5'))).toBe(false);
    await stage.reopen();
    expect(await answersFromFiles(stage)).toEqual(wanted(left));
    expect(stage.errors).toEqual([]);
  });

  it.each([
    ['changed', async (file: string) => await writeFile(file, 'no column')],
    ['cut', async (file: string) => await truncate(file, 70)],
    ['emptied', async (file: string) => await truncate(file, 0)],
  ])('are read from the catalog again when their files were %s', async (_how, damage) => {
    await using stage = await openFull();
    await stage.reopen(async () => {
      for (const name of await filesOf(stage)) await damage(await stage.blobs.open(name));
    });
    expect(await answers(stage)).toEqual(wanted(places));
    await stage.reopen();
    expect(await answersFromFiles(stage)).toEqual(wanted(places));
    expect(stage.errors).toEqual([]);
  });

  it('are read from the catalog again when their files cannot be read any more while they are used', async () => {
    await using stage = await openFull();
    for (const name of await filesOf(stage)) await truncate(await stage.blobs.open(name), 0);
    expect(await answers(stage)).toEqual(wanted(places));
  });

  it('leave nothing behind of a file that was not written to its end', async () => {
    await using stage = await openFull();
    const [name = ''] = await filesOf(stage);
    await stage.reopen(async () => {
      await writeFile(`${await stage.blobs.open(name)}.tmp`, 'the begin');
    });
    expect(await filesOf(stage)).toHaveLength(6);
    expect(await answersFromFiles(stage)).toEqual(wanted(places));
  });

  it('stay in memory when a file cannot be written', async () => {
    await using stage = await openStage(host, settings);
    await upsert(stage, places);
    await stage.index().maintain();
    stage.faults.set('saveValues', engineError('no_space'));
    expect(await answers(stage)).toEqual(wanted(places));
    expect(await answersFromFiles(stage)).toEqual(wanted(places));
    await expect.poll(() => stage.errors.length).toBe(1);
    await stage.reopen();
    expect(await answers(stage)).toEqual(wanted(places));
    await expect.poll(() => filesOf(stage)).toHaveLength(6);
  });

  it('are kept of 32 fields, those that were used last', async () => {
    await using stage = await openStage(host, settings);
    const fields = Array.from({ length: 34 }, (_, field) => `f${field}`);
    const metadataText = JSON.stringify(Object.fromEntries(fields.map((field) => [field, 1])));
    for (const place of places.slice(0, 8))
      await stage.upsert([{ ...documentAt(idOf(place), place), metadataText }]);
    await stage.index().maintain();
    for (const field of fields) {
      const before = await filesOf(stage);
      expect(await stage.matching(`{"${field}":{"gt":0}}`)).toHaveLength(8);
      // The next use comes after the file is written, so the order of uses is that of the files.
      await expect.poll(() => filesOf(stage)).not.toEqual(before);
    }
    await expect.poll(() => filesOf(stage)).toHaveLength(32);
    await stage.reopen();
    stage.faults.set('readMetadata', engineError('io'));
    expect(await stage.matching('{"f33":{"gt":0}}')).toHaveLength(8);
    await expect(stage.matching('{"f0":{"gt":0}}')).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
