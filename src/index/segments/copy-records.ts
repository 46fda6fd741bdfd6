/** What every merge does: records of a segment are copied into another one, at a pace, in small batches. */
import { assertInvariant } from '../../errors.ts';
import type { NativeIndex } from '../engine/native.ts';
import type { CopyPace } from './copy-pace.ts';

export interface CopyDeps {
  readonly native: NativeIndex;
  readonly pace: CopyPace;
  /** Multiplies the pace, by how far merges are behind. */
  readonly haste: () => number;
  /** Throws when the copy is to be given up. */
  readonly assertOpen: () => void;
}

export interface Copy {
  readonly from: number;
  readonly records: Uint32Array;
  readonly to: number;
  /** Number of the first copy in its segment. */
  readonly first: number;
}

/** Bounds how long an append or a sync waits behind a copy for a thread. */
const copyBytesMax = 1024 * 1024;
const copyRecordsMax = 512;
/** Synced as it goes: the sync at the end would otherwise hold the disk for as long as the copy took. */
const syncBytes = 64 * 1024 * 1024;

/** Resolves when they are written, not yet all durable. */
export async function copyRecords(deps: CopyDeps, { from, records, to, first }: Copy): Promise<void> {
  const { native, pace, haste, assertOpen } = deps;
  const info = native.segments().find(({ segmentId }) => segmentId === from);
  assertInvariant(info !== undefined, 'a source is open');
  const recordBytes = info.fileBytes / Math.max(1, info.records);
  const batchRecords = Math.min(copyRecordsMax, Math.max(1, Math.floor(copyBytesMax / recordBytes)));
  let unsynced = 0;
  for (let start = 0; start < records.length; start += batchRecords) {
    assertOpen();
    const batch = records.subarray(start, start + batchRecords);
    const [at] = await native.copyRecords(from, batch, to);
    assertInvariant(at === first + start, 'nobody else writes to the target');
    const bytes = batch.length * recordBytes;
    unsynced += bytes;
    if (unsynced >= syncBytes) {
      await native.sync(to);
      unsynced = 0;
    }
    await pace.spend(bytes, haste());
  }
}
