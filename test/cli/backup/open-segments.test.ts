/** Files of segments that a server removes between the moment of the catalog and their opening. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openSegments } from '../../../src/cli/backup/open-segments.ts';
import type { SegmentRow } from '../../../src/contracts/index-state.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const row = (id: number): SegmentRow => ({
  id,
  indexId: 'index',
  blob: `index/${id}.seg`,
  state: 'sealed',
  recordsReferenced: 1,
});

let directory: string;
const file = (id: number): string => path.join(directory, 'segments', row(id).blob);
beforeEach(async () => {
  directory = await newDirectory();
  await mkdir(path.dirname(file(1)), { recursive: true });
  for (const id of [1, 2]) await writeFile(file(id), `segment ${id}`);
});

/** A catalog that names other segments at each moment. The last of them stay. */
function moments(...named: readonly (readonly number[])[]) {
  let at = 0;
  return {
    segments: () => named[Math.min(at, named.length - 1)]!.map(row),
    renew: () => void (at += 1),
  };
}

describe('segments of a moment', () => {
  it('stay readable when they are removed', async () => {
    const segments = openSegments(directory, moments([1, 2]));
    await rm(file(1));
    expect(segments.missing).toEqual([]);
    expect(await readFile(`/dev/fd/${segments.descriptors.get(1)}`, 'utf8')).toBe('segment 1');
    segments.close();
  });

  it('that are gone already are those of a later moment', () => {
    const segments = openSegments(directory, moments([1, 3], [1, 4], [1, 2]));
    expect(segments.rows.map(({ id }) => id)).toEqual([1, 2]);
    expect([...segments.descriptors.keys()]).toEqual([1, 2]);
    expect(segments.missing).toEqual([]);
    segments.close();
  });

  it('are lost when a later moment still names them', () => {
    const segments = openSegments(directory, moments([1, 3, 5], [1, 2, 3]));
    expect(segments.missing.map(({ id }) => id)).toEqual([3]);
    expect([...segments.descriptors.keys()]).toEqual([1, 2]);
    segments.close();
  });
});
