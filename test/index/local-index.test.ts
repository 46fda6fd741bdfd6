/** An open index while requests, merges and verification run at once. */
import { open, readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import {
  blobsOf,
  derivedFile,
  docIds,
  documentAt,
  engineError,
  openStage,
  segmentsOf,
  type Stage,
} from '../support/stages/index-stage.ts';
import { useHost } from '../support/stages/use-host.ts';

const host = useHost();

describe('visibility', () => {
  it('begins for both commits in their order when they settle in the other', async () => {
    await using stage = await openStage(host);
    const upsert = (docId: string) => stage.upsert([documentAt(docId, 0)]);
    const answers: string[] = [];
    const firstCommit = stage.hold('commitUpsert');
    const first = upsert('first').then(() => answers.push('first'));
    await firstCommit.reached;
    const secondCommit = stage.hold('commitUpsert');
    const second = upsert('second').then(() => answers.push('second'));
    await secondCommit.reached;
    secondCommit.release();
    await new Promise(setImmediate);
    expect(answers).toEqual([]);
    expect(await docIds(stage)).toEqual([]);
    firstCommit.release();
    await Promise.all([first, second]);
    expect(answers.toSorted()).toEqual(['first', 'second']);
    expect(await docIds(stage)).toEqual(['first', 'second']);
  });

  it('is in the order of document versions where scores tie, wherever merges put them', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 4, sealedSegmentsMax: 1 });
    const order = async (topK?: number) =>
      (await stage.search({ same: 1 }, topK)).map(({ docId, chunkIndex }) => `${docId}${chunkIndex}`);
    const { chunks } = documentAt('', 0);
    const upsert = (...ids: readonly string[]) =>
      stage.upsert(ids.map((docId) => ({ docId, metadata: { same: 1 }, chunks: [...chunks, ...chunks] })));
    // There are two full segments and the active one. After a merge the older versions lie behind the younger ones.
    await upsert('c', 'b');
    await upsert('e', 'a');
    await upsert('d');
    await upsert('b');
    const expected = ['c0', 'c1', 'e0', 'e1', 'a0', 'a1', 'd0', 'd1', 'b0', 'b1'];
    expect(await order()).toEqual(expected);
    for (const settle of [
      () => stage.index().maintain(),
      () => stage.index().mergeAll(),
      () => stage.reopen(),
    ]) {
      await settle();
      expect(await order()).toEqual(expected);
      expect(await order(3)).toEqual(expected.slice(0, 3));
    }
    expect(await blobsOf(stage)).toHaveLength(1);
  });

  it('of a snapshot does not change while it is read', async () => {
    await using stage = await openStage(host, { wasteAgeMsMax: 0 });
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.index().read(async () => {
      await stage.remove('a');
      await stage.index().maintain();
      await stage.index().maintain();
      const state = await stage.catalog.loadIndexState(stage.indexId);
      // The dead version is still there for this reader.
      expect([...state.versions.died].filter((died) => died > 0)).toHaveLength(1);
    });
    await stage.index().maintain();
    const state = await stage.catalog.loadIndexState(stage.indexId);
    expect([...state.versions.died].filter((died) => died > 0)).toHaveLength(0);
  });

  it('catches up with a commit whose answer was lost', async () => {
    await using stage = await openStage(host);
    const lost = new Error('the answer was lost');
    await expect(
      stage.upsert([documentAt('a', 0)], async (work) => {
        await work();
        throw lost;
      }),
    ).rejects.toBe(lost);
    await expect(
      stage.index().commitDelete(async () => {
        await stage.commitDelete('a');
        throw lost;
      }),
    ).rejects.toBe(lost);
    expect(await docIds(stage)).toEqual([]);
    await stage.upsert([documentAt('b', 0)]);
    expect(await docIds(stage)).toEqual(['b']);
  });

  it('is not waited for behind a commit that is lost for good', async () => {
    await using stage = await openStage(host);
    const lost = new Error('the answer was lost');
    const [begun, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    const later = stage.index().commitDelete(async () => {
      begun.resolve();
      await answer.promise;
      const deleted = await stage.commitDelete('b');
      if (deleted.outcome !== 'committed') throw new Error(deleted.outcome);
      return { result: true, commit: { generation: deleted.generation, died: [deleted.died] } };
    });
    await begun.promise;
    stage.faults.set('loadState', new Error('cannot be read'));
    const first = stage.index().commitDelete(async () => {
      await stage.commitDelete('a');
      throw lost;
    });
    await expect(first).rejects.toBe(lost);
    expect(stage.index().usable).toBe(false);
    answer.resolve();
    await expect(later).rejects.toMatchObject({ code: 'service_unavailable' });
    await stage.reopen();
    expect(await docIds(stage)).toEqual([]);
  });
});

describe('space', () => {
  it('comes back after deletes: the records are gone from the disk', async () => {
    await using stage = await openStage(host, { wasteAgeMsMax: 0 });
    await stage.upsert(Array.from({ length: 50 }, (_, place) => documentAt(`d${place}`, place % 8)));
    for (let place = 0; place < 50; place += 1) if (place !== 7) await stage.remove(`d${place}`);
    await stage.index().maintain();
    const { segments } = stage.index().statistics();
    expect(segments.map(({ state, records }) => [state, records])).toEqual([['sealed', 1]]);
    expect(await blobsOf(stage)).toEqual(await segmentsOf(stage));
    expect(await docIds(stage)).toEqual(['d7']);
    await stage.remove('d7');
    await stage.index().maintain();
    expect(await blobsOf(stage)).toEqual([]);
  });

  it('is not spent on rewriting before the waste is old or large', async () => {
    const now = { ms: 1_000 };
    await using stage = await openStage(host, { wasteAgeMsMax: 12 * 3_600_000, nowMs: () => now.ms });
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.remove('a');
    const before = await blobsOf(stage);
    await stage.index().maintain();
    expect(await blobsOf(stage)).toEqual(before);
    now.ms += 12 * 3_600_000;
    await stage.index().maintain();
    expect(await blobsOf(stage)).not.toEqual(before);
    expect(await docIds(stage)).toEqual(['b']);
  });

  it('that nothing refers to is freed at the next open', async () => {
    await using stage = await openStage(host);
    await stage.upsert([documentAt('a', 0)]);
    const kept = await blobsOf(stage);
    await stage.reopen(async () => {
      await writeFile(await stage.blobs.create(`${stage.indexId}/999999.seg`), 'left by a crash');
      await writeFile(await stage.blobs.create(`${stage.indexId}/999999.seg.codes`), 'its sidecar');
      await writeFile(await stage.blobs.create(`${kept[0]}.postings.tmp`), 'a sidecar cut short');
    });
    expect((await stage.blobs.list(`${stage.indexId}/`)).map(({ name }) => name)).toEqual(kept);
    expect(await docIds(stage)).toEqual(['a']);
  });

  it.each([
    ['createSegment', 0],
    ['copyRecords', 0],
    ['sync', 0],
    ['seal', 0],
    ['sealSegment', 0],
    ['swapSegments', 0],
    // The catalog has moved the versions, and the sources are still there.
    ['swapSegments', 1],
    ['forgetDeadVersions', 0],
  ])(
    'is reclaimed in the end when %s fails during a merge after %i calls, and nothing is lost',
    async (step, calls) => {
      await using stage = await openStage(host, { wasteAgeMsMax: 0 });
      await stage.upsert([documentAt('a', 0), documentAt('b', 1), documentAt('c', 2)]);
      await stage.remove('b');
      // This seals the active segment, so that the fault meets the merge.
      await stage.reopen();
      stage.faults.set(step, engineError('io', calls));
      await stage.index().maintain();
      expect(stage.faults.size).toBe(0);
      await stage.reopen();
      expect(await docIds(stage)).toEqual(['a', 'c']);
      expect(await blobsOf(stage)).toEqual(await segmentsOf(stage));
      await stage.index().maintain();
      await stage.index().maintain();
      expect(await docIds(stage)).toEqual(['a', 'c']);
      expect(await blobsOf(stage)).toEqual(await segmentsOf(stage));
      const { segments } = stage.index().statistics();
      expect(segments.reduce((records, segment) => records + segment.records, 0)).toBe(2);
    },
  );
});

describe('merging for number', () => {
  const settings = { segmentTokenVectorsMax: 4, sealedSegmentsMax: 3 };
  const sealedOf = (stage: Stage) =>
    stage
      .index()
      .statistics()
      .segments.filter(({ state }) => state === 'sealed').length;

  /** Eight documents, `d0` removed, and a merge held where the catalog has moved them and memory has not. */
  async function mergeUpToSwap(
    stage: Stage,
  ): Promise<{ readonly merging: Promise<unknown>; readonly release: () => void }> {
    for (let place = 0; place < 8; place += 1) await stage.upsert([documentAt(`d${place}`, 1)]);
    await stage.index().settled();
    await stage.remove('d0');
    const held = stage.hold('swapSegments');
    const merging = stage.index().maintain();
    await held.reached;
    return { merging, release: () => held.release() };
  }

  it('keeps the bound while documents arrive, without being asked', async () => {
    await using stage = await openStage(host, settings);
    const ids = Array.from({ length: 120 }, (_, place) => `d${String(place).padStart(3, '0')}`);
    for (const id of ids) await stage.upsert([documentAt(id, 1)]);
    await stage.index().settled();
    expect(sealedOf(stage)).toBeLessThanOrEqual(3);
    expect(await docIds(stage)).toEqual(ids);
    await stage.reopen();
    expect(await docIds(stage)).toEqual(ids);
    expect(await blobsOf(stage)).toEqual(await segmentsOf(stage));
    expect(stage.errors).toEqual([]);
  });

  it('is taken up again at the next open', async () => {
    await using stage = await openStage(host, { ...settings, sealedSegmentsMax: 100 });
    for (let place = 0; place < 40; place += 1) await stage.upsert([documentAt(`d${place}`, 1)]);
    await stage.index().settled();
    expect(sealedOf(stage)).toBeGreaterThan(3);
    await stage.reopen(undefined, settings);
    await stage.index().settled();
    expect(sealedOf(stage)).toBeLessThanOrEqual(3);
    expect(await docIds(stage)).toHaveLength(40);
  });

  it('lets commits go on between the transactions that move versions, wherever they find them', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 4, wasteAgeMsMax: 0 });
    const { merging, release } = await mergeUpToSwap(stage);
    await stage.remove('d1');
    await stage.upsert([documentAt('d2', 5)]);
    expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
    release();
    await merging;
    expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
    await stage.remove('d3');
    await stage.reopen();
    expect(await docIds(stage)).toEqual(['d2', 'd4', 'd5', 'd6', 'd7']);
    expect(stage.errors).toEqual([]);
  });

  it('does not keep out a commit that was made elsewhere and that others wait for', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 4, wasteAgeMsMax: 0 });
    const { merging, release } = await mergeUpToSwap(stage);
    const elsewhere = await stage.commitDelete('d1');
    if (elsewhere.outcome !== 'committed') throw new Error(elsewhere.outcome);
    const waiting = stage.remove('d2');
    release();
    // The merge's end waits for the delete, which waits for the one before it.
    await new Promise((resolve) => setTimeout(resolve, 100));
    await stage.index().catchUp(elsewhere.generation);
    await Promise.all([waiting, merging]);
    expect(await docIds(stage)).toEqual(['d3', 'd4', 'd5', 'd6', 'd7']);
    await stage.reopen();
    expect(await docIds(stage)).toEqual(['d3', 'd4', 'd5', 'd6', 'd7']);
    expect(stage.errors).toEqual([]);
  });

  it('is given up when the index winds down, and commits go on finding what it has moved', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 4, wasteAgeMsMax: 0 });
    const { merging, release } = await mergeUpToSwap(stage);
    stage.index().windDown();
    release();
    await merging;
    await stage.remove('d1');
    await stage.upsert([documentAt('d2', 5)]);
    expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
    await stage.reopen();
    expect(await docIds(stage)).toEqual(['d2', 'd3', 'd4', 'd5', 'd6', 'd7']);
    await stage.index().maintain();
    expect(await blobsOf(stage)).toEqual(await segmentsOf(stage));
    expect([stage.errors, stage.corrupt]).toEqual([[], []]);
  });

  it('waits for disk space, and comes back to it', async () => {
    await using stage = await openStage(host, { ...settings, sealedSegmentsMax: 100 });
    for (let place = 0; place < 40; place += 1) await stage.upsert([documentAt(`d${place}`, 1)]);
    await stage.index().settled();
    const before = await blobsOf(stage);
    for (const step of ['copyRecords', 'sync', 'seal']) {
      stage.faults.set(step, engineError('no_space'));
      await stage.reopen(undefined, settings);
      await stage.index().settled();
      expect(stage.errors.splice(0)).toMatchObject([{ code: 'no_space' }]);
      expect(await blobsOf(stage)).toEqual(before);
      expect(await docIds(stage)).toHaveLength(40);
    }
    await stage.index().maintain();
    expect(sealedOf(stage)).toBeLessThanOrEqual(3);
    expect(await docIds(stage)).toHaveLength(40);
  });
});

describe('verification in the background', () => {
  /** One sealed segment with 'a' alive and 'b' dead, and one byte of the vectors of `docId` changed. */
  async function damaged(docId: 'a' | 'b'): Promise<Stage> {
    const stage = await openStage(host, { segmentTokenVectorsMax: 2 });
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.index().settled();
    await stage.remove('b');
    const [blob = ''] = await blobsOf(stage);
    await using file = await open(await stage.blobs.open(blob), 'r+');
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, 0);
    const bytes = buffer.subarray(0, bytesRead);
    const [first, header] = [bytes.indexOf('MXRC'), 64];
    const record = docId === 'a' ? first : bytes.indexOf('MXRC', first + header);
    const at = bytes.indexOf(127, record + header);
    expect(at).toBeGreaterThan(record);
    await file.write(Uint8Array.of(126), 0, 1, at);
    return stage;
  }

  it('finds a damaged record that no search has touched, and reports it', async () => {
    await using stage = await damaged('a');
    await stage.index().verified();
    expect(stage.corrupt).toMatchObject([{ code: 'corrupt', message: expect.stringMatching(/record 0/) }]);
    expect(stage.verification).toEqual({ recordsVerified: 2, recordsDamaged: 1 });
  });

  it.each([
    ['codes', 1],
    // The last section holds one record number, padded to 64 bytes.
    ['postings', 64],
  ])('builds damaged %s again and says so', async (kind, fromEnd) => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 2, codesTokenVectorsMin: 1 });
    await stage.upsert([documentAt('a', 0, { is: 'a' }), documentAt('b', 1)]);
    await stage.index().settled();
    const file = await derivedFile(stage, kind);
    const intact = await readFile(file);
    // This byte lies behind the directory, where opening does not look.
    await writeFile(file, Buffer.from(intact.with(intact.length - fromEnd, 1)));
    await stage.reopen();
    expect(await docIds(stage)).toEqual(['a', 'b']);
    expect(stage.errors).toEqual([]);
    await stage.index().verified();
    expect(stage.errors.splice(0)).toMatchObject([
      { message: expect.stringMatching(`${kind}: damaged; it is being built again`) },
    ]);
    await stage.index().settled();
    expect(await readFile(file)).toEqual(intact);
  });

  it('comes back to a segment only after a while', async () => {
    const now = { ms: 1_000_000 };
    await using stage = await openStage(host, { segmentTokenVectorsMax: 2, nowMs: () => now.ms });
    await stage.upsert([documentAt('a', 0), documentAt('b', 1)]);
    await stage.index().settled();
    for (const records of [2, 2]) {
      await stage.index().verified();
      expect(stage.verification.recordsVerified).toBe(records);
    }
    now.ms += 7 * 24 * 3_600_000;
    await stage.index().verified();
    expect(stage.verification).toEqual({ recordsVerified: 4, recordsDamaged: 0 });
  });
});
