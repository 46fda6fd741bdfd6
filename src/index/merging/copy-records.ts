/** Copies records of a segment into another one, at a pace, in small batches. Every merge does this. */
import { assertInvariant } from '../../errors.ts';
import type { NativeIndex } from '../engine/native.ts';
import type { CopyPace } from './copy-pace.ts';

export interface CopyDeps {
  readonly native: NativeIndex;
  readonly pace: CopyPace;
  /** Multiplies the pace when merges are behind. */
  readonly haste: () => number;
  readonly assertOpen: () => void;
}

export interface Copy {
  readonly from: number;
  readonly records: Uint32Array;
  readonly to: number;
  /** The number that the first copy gets in the target. */
  readonly first: number;
}

/** An append or a sync waits for a thread behind one batch at most. */
const copyBytesMax = 1024 * 1024;
const copyRecordsMax = 512;
/** The target is synced after this many bytes. One sync at the end would block the disk for as long as the copy took. */
const syncBytes = 64 * 1024 * 1024;

/** Resolves when all copies are written. The last of them are not durable yet. */
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
