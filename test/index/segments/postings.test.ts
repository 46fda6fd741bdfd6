/** Postings of sealed segments, which filters look up. Their loss costs time and nothing else. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { termBytes } from '../../../src/index/terms/metadata-terms.ts';
import { engineError } from '../../support/stages/faults.ts';
import { derivedFile, documentAt, openStage, type Stage } from '../../support/stages/index-stage.ts';
import { useHost } from '../../support/stages/use-host.ts';

const host = useHost();

describe('postings', () => {
  const found = async (stage: Stage) => (await stage.search({ is: 'a' })).map(({ docId }) => docId);
  const postingBytes = (stage: Stage) => stage.index().statistics().segments[0]?.postingBytes;
  const opened = async (): Promise<Stage> => {
    const stage = await openStage(host, { segmentTokenVectorsMax: 3 });
    await stage.upsert([
      documentAt('a', 0, { is: 'a' }),
      documentAt('b', 1, { is: 'b' }),
      documentAt('c', 2, { is: 'a' }),
    ]);
    await stage.index().settled();
    return stage;
  };

  it('that are missing are built when the index opens, and filters do not wait for them', async () => {
    await using stage = await opened();
    const file = await derivedFile(stage, 'postings');
    const intact = await readFile(file);
    await stage.reopen(async () => {
      await rm(file);
      stage.faults.set('buildPostings', engineError('no_space'));
    });
    await stage.index().settled();
    expect(stage.errors.splice(0)).toMatchObject([{ code: 'no_space' }]);
    expect(postingBytes(stage)).toBe(0);
    expect(await found(stage)).toEqual(['a', 'c']);
    // The next round of upkeep tries again.
    await stage.index().maintain();
    expect(postingBytes(stage)).toBe(intact.length);
    expect(await readFile(file)).toEqual(intact);
    expect(await found(stage)).toEqual(['a', 'c']);
    expect([stage.errors, stage.corrupt]).toEqual([[], []]);
  });

  it('that a filter finds damaged are built again by the next round of upkeep', async () => {
    await using stage = await opened();
    const file = await derivedFile(stage, 'postings');
    const intact = await readFile(file);
    // The last section holds three record numbers, padded to 64 bytes.
    const damaged = Buffer.from(intact);
    for (const place of [64, 60, 56]) damaged[intact.length - place]! ^= 1;
    await stage.reopen(() => writeFile(file, damaged));
    expect(postingBytes(stage)).toBe(intact.length);
    expect(await found(stage)).toEqual(['a', 'c']);
    expect(postingBytes(stage)).toBe(0);
    await stage.index().maintain();
    expect(await readFile(file)).toEqual(intact);
    expect(await found(stage)).toEqual(['a', 'c']);
  });

  it('are saved once the terms fill a segment, however few token vectors it has, also after a restart', async () => {
    await using stage = await openStage(host, { segmentTermBytesMax: 4 * termBytes });
    const states = () =>
      stage
        .index()
        .statistics()
        .segments.map(({ state, termBytes: bytes }) => [state, bytes]);
    await stage.upsert([documentAt('a', 0, { is: 'a', n: 1, m: null })]);
    expect(states()).toEqual([['active', 3 * termBytes]]);
    await stage.reopen();
    await stage.upsert([documentAt('b', 1, { is: 'b' }), documentAt('c', 2, { is: 'a' })]);
    await stage.index().settled();
    expect(states()).toEqual([
      ['sealed', 4 * termBytes],
      ['active', termBytes],
    ]);
    expect(await found(stage)).toEqual(['a', 'c']);
  });

  it('go with their segment, and a build that comes too late leaves no file', async () => {
    await using stage = await openStage(host, { segmentTokenVectorsMax: 1, wasteAgeMsMax: 0 });
    await stage.upsert([documentAt('a', 0, { is: 'a' })]);
    await stage.index().settled();
    const file = await derivedFile(stage, 'postings');
    const held = stage.hold('buildPostings');
    await stage.reopen(() => rm(file));
    await held.reached;
    await stage.remove('a');
    // Sealing is followed by the merge that is due.
    await stage.upsert([documentAt('b', 1)]);
    await expect.poll(async () => (await stage.blobs.list(`${stage.indexId}/`)).length).toBe(2);
    await writeFile(file, 'written meanwhile');
    held.release();
    await stage.index().settled();
    const [{ blob } = { blob: '' }] = (await stage.catalog.loadIndexState(stage.indexId)).segments;
    const names = (await stage.blobs.list(`${stage.indexId}/`)).map(({ name }) => name);
    expect(names).toEqual([blob, `${blob}.postings`]);
    expect(await found(stage)).toEqual([]);
  });
});
