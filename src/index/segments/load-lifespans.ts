/** Loads lifespans of versions in small steps, so that requests to other indexes go on meanwhile. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { IndexState } from '../../contracts/index-state.ts';
import type { NativeIndex } from '../engine/native.ts';

/** One step takes a few milliseconds of the event loop. */
const lifespansStep = 32_768;

export async function loadLifespans(
  native: NativeIndex,
  { segmentIds, records, versionIds, born, died }: IndexState['versions'],
): Promise<void> {
  for (let first = 0; first < versionIds.length; first += lifespansStep) {
    const end = first + lifespansStep;
    native.loadLifespans({
      segmentIds: segmentIds.subarray(first, end),
      records: records.subarray(first, end),
      versionIds: versionIds.subarray(first, end),
      born: born.subarray(first, end),
      died: died.subarray(first, end),
    });
    await nextTurn();
  }
}
