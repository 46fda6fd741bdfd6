/** An open index when something fails. */
import { open } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import type { BlobStore } from '../../src/index/storage/blob-store.ts';
import { engineError } from '../support/stages/faults.ts';
import {
  blobsOf,
  docIds,
  documentAt,
  expected,
  openStage,
  type TestDocument,
} from '../support/stages/index-stage.ts';
import { useHost } from '../support/stages/use-host.ts';

const host = useHost();

describe('failures', () => {
  const documents: readonly TestDocument[] = [documentAt('a', 0), documentAt('b', 1)];

  it.each(['sync', 'append'])(
    'of %s refuse the upsert with 503 and the next one goes to a new segment',
    async (step) => {
      await using stage = await openStage(host);
      await stage.upsert(documents);
      stage.faults.set(step, engineError('io'));
      const failed = await stage
        .upsert([documentAt('a', 5), documentAt('c', 2)])
        .catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(ServiceError);
      expect(failed).toMatchObject({ code: 'service_unavailable' });
      expect((failed as ServiceError).retryAfterSeconds).toBeGreaterThan(0);
      const [before] = await blobsOf(stage);
      await stage.upsert([documentAt('d', 3)]);
      expect(await blobsOf(stage)).toHaveLength(2);
      expect(await docIds(stage)).toEqual(['a', 'b', 'd']);
      // The unwritable segment's live records move, and its file goes.
      await stage.index().maintain();
      expect(await blobsOf(stage)).not.toContain(before);
      await stage.reopen();
      expect(await docIds(stage)).toEqual(['a', 'b', 'd']);
      const wanted = expected([...documents, documentAt('d', 3)]);
      for (const { docId, score } of await stage.search()) {
        expect(score).toBeCloseTo(wanted.find((found) => found.docId === docId)!.score, 1);
      }
    },
  );

  it('for want of space are 503, and upserts go on in the same segment once there is space', async () => {
    await using stage = await openStage(host);
    await stage.upsert(documents);
    for (const step of ['append', 'createSegment']) {
      if (step === 'createSegment') await stage.reopen();
      stage.faults.set('append', engineError('no_space'));
      await expect(stage.upsert([documentAt('c', 2)])).rejects.toMatchObject({ code: 'service_unavailable' });
    }
    await stage.upsert([documentAt('c', 2)]);
    expect(await blobsOf(stage)).toHaveLength(1);
    expect(await docIds(stage)).toEqual(['a', 'b', 'c']);
  });

  it('to note that a segment is sealed are repaired by the next round of upkeep', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 2, wasteAgeMsMax: 0 });
    stage.faults.set('sealSegment', new Error('cannot be noted'));
    await stage.upsert(documents);
    await stage.index().settled();
    expect(stage.errors.splice(0)).toMatchObject([{ message: 'cannot be noted' }]);
    await stage.remove('a');
    await stage.index().maintain();
    expect(stage.errors).toEqual([]);
    const { segments } = stage.index().statistics();
    expect(segments.map(({ state, records }) => [state, records])).toEqual([['sealed', 1]]);
    expect(await docIds(stage)).toEqual(['b']);
  });

  // The call fails once. If background work seals the segment before it is opened again, the test begins anew.
  it(
    'to note that a segment is sealed leave it active where it is opened again: its footer may not be durable',
    { retry: 5 },
    async () => {
      await using stage = await openStage(host, { segmentTokenVectorsMax: 2 });
      stage.faults.set('sealSegment', new Error('cannot be noted'));
      await stage.upsert(documents);
      await stage.index().settled();
      await stage.reopen();
      const states = () =>
        stage
          .index()
          .statistics()
          .segments.map(({ state, records }) => [state, records]);
      expect(states()).toEqual([['active', 2]]);
      expect(await docIds(stage)).toEqual(['a', 'b']);
      await stage.index().maintain();
      await stage.upsert([documentAt('c', 2)]);
      await stage.index().settled();
      expect(states()).toContainEqual(['sealed', 2]);
      await stage.reopen();
      expect(await docIds(stage)).toEqual(['a', 'b', 'c']);
    },
  );

  it.each(['EIO', 'EROFS', 'EMFILE', 'ENFILE', 'ENOMEM', 'ENOLCK', 'ENOSPC', 'EDQUOT'])(
    'of the system (%s) are 503 and no damage, and pass',
    async (code) => {
      let failing: keyof BlobStore | undefined;
      const failure = Object.assign(new Error(`${code}: in the way`), { code });
      const blobs = new Proxy(host.blobs, {
        get: (target, name: keyof BlobStore) =>
          failing === name ? () => Promise.reject(failure) : target[name].bind(target),
      });
      await using stage = await openStage({ ...host, blobs });
      const refused = { code: 'service_unavailable', retryAfterSeconds: expect.any(Number) as number };
      failing = 'create';
      await expect(stage.upsert(documents)).rejects.toMatchObject(refused);
      failing = undefined;
      await stage.upsert(documents);
      for (const method of ['open', 'list'] as const) {
        failing = method;
        await expect(stage.reopen()).rejects.toMatchObject(refused);
        failing = undefined;
        await stage.reopen();
      }
      expect(stage.corrupt).toEqual([]);
      expect(await docIds(stage)).toEqual(['a', 'b']);
    },
  );

  it('of a commit store nothing', async () => {
    await using stage = await openStage(host);
    await stage.upsert(documents);
    const failure = new Error('no commit');
    await expect(
      stage.upsert([documentAt('a', 5), documentAt('c', 2)], () => Promise.reject(failure)),
    ).rejects.toBe(failure);
    expect(await docIds(stage)).toEqual(['a', 'b']);
    await stage.reopen();
    expect(await docIds(stage)).toEqual(['a', 'b']);
  });

  it('to publish a commit make the index unusable, and the next open finds the commit in the catalog', async () => {
    await using stage = await openStage(host);
    await stage.upsert(documents);
    const nowhere = { segmentId: 1, record: 1_000_000 };
    const removal = stage.index().commitDelete(async () => {
      const removed = await stage.commitDelete('a');
      if (removed.outcome !== 'committed') throw new Error(removed.outcome);
      return { result: true, commit: { generation: removed.generation, died: [nowhere] } };
    });
    const following = stage.upsert([documentAt('c', 2)]);
    for (const outcome of await Promise.allSettled([removal, following])) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'service_unavailable' } });
    }
    await expect(stage.search()).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(stage.index().usable).toBe(false);
    expect(stage.errors).toHaveLength(1);
    await stage.reopen();
    expect(await docIds(stage)).toContain('b');
    expect(await docIds(stage)).not.toContain('a');
  });

  it('of a damaged referenced record are reported and the index does not open', async () => {
    await using stage = await openStage(host);
    await stage.upsert(documents);
    const [blob = ''] = await blobsOf(stage);
    const damage = stage.reopen(async () => {
      await using file = await open(await stage.blobs.open(blob), 'r+');
      const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, 0);
      // The byte lies in the middle of the records, where a checksum covers every byte.
      const at = buffer.subarray(0, bytesRead).lastIndexOf(127);
      expect(at).toBeGreaterThan(0);
      await file.write(Uint8Array.of(126), 0, 1, at);
    });
    await expect(damage).rejects.toMatchObject({ code: 'internal_error' });
    expect(stage.corrupt).toHaveLength(1);
  });

  it('of a sealed segment that lost its footer are reported, and its file is left as it is', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 2 });
    await stage.upsert(documents);
    await stage.index().settled();
    const files = await stage.blobs.list(`${stage.indexId}/`);
    const name = await stage.blobs.open(files[0]!.name);
    const damage = stage.reopen(async () => {
      await using file = await open(name, 'r+');
      const { size } = await file.stat();
      // Without the magic of its trailer the file looks like one that is still being written.
      await file.write(Buffer.alloc(8), 0, 8, size - 64);
    });
    await expect(damage).rejects.toMatchObject({ code: 'internal_error' });
    expect(stage.corrupt).toHaveLength(1);
    expect(await stage.blobs.list(`${stage.indexId}/`)).toEqual(files);
  });
});
