/** Codes and postings of an index whose disk, or whose background work, fails at the wrong moment. */
import { copyFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { engineError, withBlobs } from '../../support/stages/faults.ts';
import { documentAt, openStage, type Stage } from '../../support/stages/index-stage.ts';
import { useHost } from '../../support/stages/use-host.ts';

const settings = { segmentTokenVectorsMax: 2, codesTokenVectorsMin: 1 };

const host = useHost();

const centroids = (stage: Stage) =>
  stage
    .index()
    .statistics()
    .segments.map((segment) => segment.centroids > 0);

describe('codes that could not be built', () => {
  it('are built at the next round of upkeep', async () => {
    await using stage = await openStage(host, settings);
    stage.faults.set('buildCodes', engineError('no_space'));
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.index().settled();
    expect(centroids(stage)).toEqual([false]);
    expect(stage.errors.splice(0)).toMatchObject([{ code: 'no_space' }]);
    await stage.index().maintain();
    expect(centroids(stage)).toEqual([true]);
    expect(stage.errors).toEqual([]);
  });

  it('for want of space are not even begun', async () => {
    const blobs = withBlobs(host.blobs, { freeBytes: () => Promise.resolve(10) });
    await using stage = await openStage({ ...host, blobs }, settings);
    stage.faults.set('buildCodes', new Error('it was begun'));
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.index().settled();
    expect(stage.errors).toMatchObject([{ code: 'no_space', message: 'codes needs 64 bytes, 10 are free' }]);
  });
});

describe('files of segments', () => {
  it('that are still being written are not taken for damaged ones', async () => {
    await using stage = await openStage(host, { ...settings, codesTokenVectorsMin: 100 });
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.index().settled();
    const [segment] = await stage.blobs.list(`${stage.indexId}/`);
    await writeFile(`${await stage.blobs.open(segment!.name)}.codes.tmp`, Buffer.alloc(10));
    await stage.index().verified();
    expect(stage.errors).toEqual([]);
  });

  it('weigh as much on disk as the engine says, shared centroids once', async () => {
    await using stage = await openStage(host, settings);
    for (const n of [0, 2, 4]) await stage.upsert([documentAt(`a${n}`, n), documentAt(`b${n}`, n + 1)]);
    await stage.index().settled();
    const files = await stage.blobs.list(`${stage.indexId}/`);
    const { segments } = stage.index().statistics();
    expect(segments).toHaveLength(3);
    const derived = files.filter(({ name }) => !name.endsWith('.seg'));
    expect(derived.map(({ name }) => name.replace(/.*\.seg|.*\/|-[0-9a-f]{16}$/g, '')).toSorted()).toEqual([
      '.codes',
      '.codes',
      '.codes',
      '.postings',
      '.postings',
      '.postings',
      'codebook',
    ]);
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    expect(sum(derived.map(({ bytes }) => bytes))).toBe(
      sum(segments.map(({ derivedBytes }) => derivedBytes)),
    );
  });
});

describe('the codebook of an index', () => {
  const codebooks = async (stage: Stage) =>
    (await stage.blobs.list(`${stage.indexId}/`)).filter(({ name }) => name.includes('codebook'));
  const named = (stage: Stage) => [
    ...new Set(
      stage
        .index()
        .statistics()
        .segments.map(({ codebook }) => `${stage.indexId}/${codebook}`),
    ),
  ];
  const fill = async (stage: Stage, first: number, count: number) => {
    for (let n = first; n < first + count; n += 2) {
      await stage.upsert([documentAt(`a${n}`, n), documentAt(`b${n}`, n + 1)]);
      await stage.index().settled();
    }
  };

  it('goes when all codes are read with another one, and with the last segment', async () => {
    await using stage = await openStage(host, settings);
    await fill(stage, 0, 2);
    const first = named(stage);
    expect((await codebooks(stage)).map(({ name }) => name)).toEqual(first);
    // With twice the token vectors a new codebook is fitted.
    await fill(stage, 2, 4);
    await stage.index().settled();
    expect(named(stage)).toHaveLength(1);
    expect(named(stage)).not.toEqual(first);
    expect((await codebooks(stage)).map(({ name }) => name)).toEqual(named(stage));
    for (let n = 0; n < 6; n += 1) await stage.remove(`${n % 2 === 0 ? 'a' : 'b'}${n - (n % 2)}`);
    await stage.index().mergeAll();
    await stage.index().settled();
    expect(await stage.blobs.list(`${stage.indexId}/`)).toEqual([]);
  });

  it('of a build that a crash cut short goes at the next open, and one that is lost is fitted anew', async () => {
    await using stage = await openStage(host, settings);
    await fill(stage, 0, 2);
    const [codebook] = named(stage);
    const file = await stage.blobs.open(codebook!);
    const [segment] = await stage.blobs.list(`${stage.indexId}/`);
    await stage.reopen(async () => {
      for (const name of [file.replace(/[0-9a-f]{16}$/, '0123456789abcdef'), `${file}.tmp`]) {
        await copyFile(file, name);
      }
      await copyFile(file, `${await stage.blobs.open(segment!.name)}.codebook`);
    });
    expect(centroids(stage)).toEqual([true]);
    expect((await codebooks(stage)).map(({ name }) => name)).toEqual([codebook]);
    await stage.reopen(() => stage.blobs.remove(codebook!));
    await stage.index().settled();
    expect(centroids(stage)).toEqual([true]);
    expect((await codebooks(stage)).map(({ name }) => name)).toEqual(named(stage));
    expect(stage.errors).toEqual([]);
  });
});
