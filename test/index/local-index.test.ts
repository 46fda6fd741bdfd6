/** An open index while requests, merges and verification run at once. */
import { open, readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { engineError, withBlobs } from '../support/stages/faults.ts';
import {
  blobsOf,
  columnsOf,
  derivedFile,
  docIds,
  documentAt,
  mergeUpTo,
  openStage,
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
    stage.faults.set('loadIndexState', new Error('cannot be read'));
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
  it('that nothing refers to is freed at the next open', async () => {
    await using stage = await openStage(host);
    await stage.upsert([documentAt('a', 0)]);
    const [blob = ''] = await blobsOf(stage);
    const column = '.columns-0123456789abcdef';
    await stage.reopen(async () => {
      await writeFile(await stage.blobs.create(`${stage.indexId}/999999.seg`), 'left by a crash');
      await writeFile(await stage.blobs.create(`${stage.indexId}/999999.seg.codes`), 'its sidecar');
      await writeFile(await stage.blobs.create(`${stage.indexId}/999999.seg${column}`), 'another');
      await writeFile(await stage.blobs.create(`${blob}.postings.tmp`), 'a sidecar cut short');
      await writeFile(await stage.blobs.create(`${blob}${column}.tmp`), 'another');
      await writeFile(await stage.blobs.create(`${blob}${column}`), 'a column');
    });
    const names = (await stage.blobs.list(`${stage.indexId}/`)).map(({ name }) => name);
    expect(names).toEqual([blob, `${blob}${column}`]);
    expect(await docIds(stage)).toEqual(['a']);
  });
});

describe('merging for number', () => {
  const settings = { segmentTokenVectorsMax: 4, sealedSegmentsMax: 3 };
  const sealedOf = (stage: Stage) =>
    stage
      .index()
      .statistics()
      .segments.filter(({ state }) => state === 'sealed').length;

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

  it('does not keep out a commit that was made elsewhere and that others wait for', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 4, wasteAgeMsMax: 0 });
    const { merging, release } = await mergeUpTo('swapSegments', stage);
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

  it('removes a damaged column and says so, and its values are read again when they are needed', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 2, codesTokenVectorsMin: 1 });
    await stage.upsert([documentAt('a', 0, { n: 1, m: 1 }), documentAt('b', 1, { n: 2, m: 2 })]);
    await stage.index().settled();
    const find = async (field: string): Promise<void> =>
      expect(await stage.matching(`{"${field}":{"gt":1}}`)).toEqual(['b']);
    await find('n');
    await expect.poll(() => columnsOf(stage)).toHaveLength(1);
    const [column = ''] = await columnsOf(stage);
    const file = await stage.blobs.open(column);
    const intact = await readFile(file);
    await find('m');
    await expect.poll(() => columnsOf(stage)).toHaveLength(2);
    // The last byte is one of the zeros at the end, on which no value depends.
    await using handle = await open(file, 'r+');
    await handle.write(Uint8Array.of(1), 0, 1, intact.length - 1);
    await stage.index().verified();
    expect(stage.errors.splice(0)).toMatchObject([{ message: `${column}: damaged; it is removed` }]);
    expect(await columnsOf(stage)).toHaveLength(1);
    for (const field of ['n', 'm']) await find(field);
    await expect.poll(() => columnsOf(stage)).toHaveLength(2);
    expect(await readFile(file)).toEqual(intact);
    await stage.index().verified();
    expect([stage.errors, stage.corrupt]).toEqual([[], []]);
  });

  it('takes a column that goes meanwhile for no damage', async () => {
    const vanishing = new Set<string>();
    const blobs = withBlobs(host.blobs, {
      async open(name) {
        const file = await host.blobs.open(name);
        if (vanishing.delete(name)) await host.blobs.remove(name);
        return file;
      },
    });
    await using stage = await openStage(
      { ...host, blobs },
      { segmentTokenVectorsMax: 2, codesTokenVectorsMin: 1 },
    );
    await stage.upsert([documentAt('a', 0, { n: 1 }), documentAt('b', 1, { n: 2 })]);
    await stage.index().settled();
    expect(await stage.matching('{"n":{"gt":1}}')).toEqual(['b']);
    await expect.poll(() => columnsOf(stage)).toHaveLength(1);
    for (const name of await columnsOf(stage)) vanishing.add(name);
    await stage.index().verified();
    expect(await columnsOf(stage)).toEqual([]);
    expect([stage.errors, stage.corrupt]).toEqual([[], []]);
    expect(await stage.matching('{"n":{"gt":1}}')).toEqual(['b']);
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
