/**
 * Records, codes and postings that cannot be read or have changed. A search that needs them gets a 503. The index is marked
 * as damaged only if a second read finds the damage, too. The tests cut or change files below an open index.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { Disk, noDisks } from '../support/machine/disk.ts';
import { engineError } from '../support/stages/faults.ts';
import {
  blobsOf,
  derivedFile,
  docIds,
  documentAt,
  openStage,
  type Stage,
} from '../support/stages/index-stage.ts';
import { useHost } from '../support/stages/use-host.ts';
import { hangMs } from '../support/running/eventually.ts';

const settings = { segmentTokenVectorsMax: 3, codesTokenVectorsMin: 1 };
const documents = ['a', 'b', 'c'].map((docId, place) => documentAt(docId, place, { is: docId }));
const recordMagic = 'MXRC';

const host = useHost();
let other: Stage;
beforeEach(async () => {
  other = await openStage(host, settings);
  await other.upsert(documents);
});
afterEach(async () => {
  assert.deepEqual(await docIds(other), ['a', 'b', 'c']);
  assert.deepEqual([other.corrupt, other.errors], [[], []]);
  await other[Symbol.asyncDispose]();
});

/** An index with one sealed segment, opened again, so that no search has touched a record. */
async function sealedStage(): Promise<Stage> {
  const stage = await openStage(host, settings);
  await stage.upsert(documents);
  await stage.index().settled();
  await stage.reopen();
  return stage;
}

async function segmentFile(stage: Stage): Promise<string> {
  const [blob = ''] = await blobsOf(stage);
  return stage.blobs.open(blob);
}

/** Changes a byte in the vectors of one record. */
function withDamage(intact: Buffer, record: number): Buffer {
  let at = 0;
  for (let before = 0; before <= record; before += 1) at = intact.indexOf(recordMagic, at) + 1;
  const damaged = Buffer.from(intact);
  damaged[intact.indexOf(127, at + 64)]! ^= 1;
  return damaged;
}

/** Expects the search to be refused with a 503, while another index is searched. */
async function expectRefused(stage: Stage): Promise<void> {
  const [failure] = await Promise.all([stage.search().catch((error: unknown) => error), docIds(other)]);
  expect(failure).toBeInstanceOf(ServiceError);
  expect(failure).toMatchObject({
    code: 'service_unavailable',
    retryAfterSeconds: expect.any(Number) as number,
  });
}

const unverified = () => engineError('io');

describe('a record that the catalog names', () => {
  it('fails its search, and marks the index as damaged once a second read finds the damage, too', async () => {
    await using stage = await sealedStage();
    const file = await segmentFile(stage);
    await writeFile(file, withDamage(await readFile(file), 1));
    await expectRefused(stage);
    await expect.poll(() => stage.corrupt).toMatchObject([{ message: expect.stringMatching(/record 1/) }]);
  });

  it('is used again if the second read finds it intact', async () => {
    await using stage = await sealedStage();
    const file = await segmentFile(stage);
    const intact = await readFile(file);
    await writeFile(file, withDamage(intact, 1));
    // The first read finds nothing: the disk is away.
    stage.faults.set('verifyRecord', unverified());
    await expectRefused(stage);
    await expect.poll(() => stage.errors.splice(0)).toMatchObject([{ code: 'io' }]);
    await writeFile(file, intact);
    await expectRefused(stage);
    await expect.poll(() => docIds(stage).catch(() => [])).toEqual(['a', 'b', 'c']);
    expect([stage.corrupt, stage.errors]).toEqual([[], []]);
  });

  it('that verification finds damaged is read a second time, too', async () => {
    await using stage = await sealedStage();
    const file = await segmentFile(stage);
    const intact = await readFile(file);
    await writeFile(file, withDamage(intact, 1));
    stage.faults.set('verifyRecord', unverified());
    await stage.index().verified();
    expect(stage.errors.splice(0)).toMatchObject([{ code: 'io' }]);
    expect(stage.corrupt).toEqual([]);
    await stage.index().verified();
    expect(stage.corrupt).toMatchObject([{ message: expect.stringMatching(/record 1/) }]);
  });

  it('that a merge cannot read is verified, too', async () => {
    await using stage = await sealedStage();
    const file = await segmentFile(stage);
    await writeFile(file, withDamage(await readFile(file), 1));
    await stage.remove('a');
    await stage.index().mergeAll();
    // The merge and the verification may each report it.
    await expect
      .poll(() => stage.corrupt)
      .toContainEqual(expect.objectContaining({ message: expect.stringMatching(/record 1/) }));
  });

  it('that is gone with the end of its segment is found by verification', async () => {
    await using stage = await sealedStage();
    await truncate(await segmentFile(stage), 128);
    await stage.index().verified();
    expect(stage.corrupt).toHaveLength(1);
  });
});

describe('a record that the catalog does not name any more', () => {
  it('fails nothing: no search, no filter, no codes, no merge', async () => {
    // Otherwise a merge would remove it before the test looks.
    await using stage = await openStage(host, { ...settings, wasteAgeMsMax: Infinity });
    await stage.upsert(documents);
    await stage.index().settled();
    await stage.remove('b');
    const file = await segmentFile(stage);
    await stage.reopen(async () => writeFile(file, withDamage(await readFile(file), 1)));
    expect(await docIds(stage)).toEqual(['a', 'c']);
    await stage.index().verified();
    expect(stage.errors.splice(0)).toMatchObject([
      { message: expect.stringMatching(/record 1.*no search can see it/) },
    ]);
    for (const kind of ['codes', 'postings']) await truncate(await derivedFile(stage, kind), 0);
    expect((await stage.search({ is: 'c' })).map(({ docId }) => docId)).toEqual(['c']);
    await stage.index().maintain();
    await stage.index().mergeAll();
    expect(await docIds(stage)).toEqual(['a', 'c']);
    expect([stage.corrupt, stage.errors]).toEqual([[], []]);
  });

  it('does not keep an index from opening', async () => {
    await using stage = await openStage(host);
    await stage.upsert(documents);
    await stage.remove('b');
    await stage.index().maintain();
    const file = await segmentFile(stage);
    await stage.reopen(async () => writeFile(file, withDamage(await readFile(file), 1)));
    expect(await docIds(stage)).toEqual(['a', 'c']);
    expect([stage.corrupt, stage.errors]).toEqual([[], []]);
  });
});

describe('an index that finds damage when it is opened', () => {
  it('is read a second time before it is marked', async () => {
    await using stage = await openStage(host);
    await stage.upsert(documents);
    stage.faults.set('openSegment', engineError('corrupt'));
    await stage.reopen();
    expect(await docIds(stage)).toEqual(['a', 'b', 'c']);
    expect(stage.corrupt).toEqual([]);
  });
});

describe.skipIf(noDisks !== undefined)('a disk that fails to read', () => {
  it('marks the index as damaged for a record that somebody may see, and not while it reads nothing', async () => {
    const disk = await Disk.make();
    const script = path.join(import.meta.dirname, 'read-errors-process.ts');
    const env = { ...process.env, ...disk.environment, TMPDIR: disk.directory };
    const { stdout } = await promisify(execFile)(process.execPath, [script], { env, timeout: hangMs });
    const found = ['a', 'b', 'c'];
    expect(JSON.parse(stdout)).toEqual({
      alive: { corrupt: 1, errors: [], found: 'refused' },
      dead: {
        corrupt: 0,
        errors: [expect.stringMatching(/Input\/output error; no search can see it/)],
        found: ['a', 'c'],
      },
      away: { corrupt: 0, errors: [expect.stringMatching(/Input\/output error/)], found },
      back: { corrupt: 0, errors: [], found },
    });
  });
});

describe('a derived file that cannot be read', () => {
  it('of codes is built again at once, and searches go on', async () => {
    await using stage = await openStage(host, settings);
    await stage.upsert(documents);
    await stage.index().settled();
    const file = await derivedFile(stage, 'codes');
    const intact = await readFile(file);
    await truncate(file, 0);
    const found = await stage.index().read((reader) =>
      reader.search({
        query: new Float32Array(8).fill(1),
        offsets: new Float32Array(1),
        topK: 1,
        candidateK: 1,
        components: false,
        timeoutMs: hangMs,
        plan: 'codes',
      }),
    );
    expect(found).toMatchObject({ plan: 'exact', codesLost: true });
    await stage.index().settled();
    expect(await readFile(file)).toEqual(intact);
    expect([stage.corrupt, stage.errors]).toEqual([[], []]);
  });

  it('of postings is built again by the next round of upkeep, and filters read the records meanwhile', async () => {
    await using stage = await openStage(host, settings);
    await stage.upsert(documents);
    await stage.index().settled();
    const file = await derivedFile(stage, 'postings');
    const intact = await readFile(file);
    await truncate(file, 0);
    const filtered = async () => (await stage.search({ is: 'b' })).map(({ docId }) => docId);
    expect(await filtered()).toEqual(['b']);
    await stage.index().maintain();
    expect(await readFile(file)).toEqual(intact);
    expect(await filtered()).toEqual(['b']);
    expect([stage.corrupt, stage.errors]).toEqual([[], []]);
  });
});
