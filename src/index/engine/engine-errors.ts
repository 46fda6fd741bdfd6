/** Turns the addon's errors into the service's, by consequence. The cause is kept. */
import { ServiceError, unavailable } from '../../errors.ts';
import { fromSystem, hasCode, noSpace, storageUnavailable } from '../../system-errors.ts';

/** The engine refuses only a tenant that has more than its share (native/files/memory.h). */
const noRoom = 'the indexes of this tenant do not fit their share of the memory of the engine';

export type EngineErrorCode =
  | 'invalid_argument'
  | 'closed'
  | 'io'
  | 'no_space'
  | 'no_memory'
  | 'corrupt'
  | 'unsupported_version'
  | 'deadline_exceeded'
  | 'values_missing'
  | 'absent';

export function hasEngineCode(error: unknown, code: EngineErrorCode): boolean {
  return hasCode(error, code);
}

export interface UnreadRecord {
  readonly segmentId: number;
  readonly record: number;
}

/** The record that the engine could not read, or found changed. Such a record is to be verified. */
export function unreadRecord(error: unknown): UnreadRecord | undefined {
  const isUnread = error instanceof Error && 'segmentId' in error && 'record' in error;
  return isUnread ? { segmentId: Number(error.segmentId), record: Number(error.record) } : undefined;
}

/** Columns: the engine needed part `parts[i]` of the file of segment `segmentIds[i]`, which is not here yet. */
export interface AbsentParts {
  readonly segmentIds: Float64Array;
  readonly parts: Uint32Array;
}

export function absentParts(error: unknown): AbsentParts | undefined {
  return hasEngineCode(error, 'absent') ? (error as Error & AbsentParts) : undefined;
}

/** Runs `work`, whose errors become those of `fromEngine`. */
export async function throughEngine<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw fromEngine(error);
  }
}

/** Operating errors, the system's too, become `ServiceError`s. Any other error is a defect and returned as it is. */
export function fromEngine(error: unknown): unknown {
  const is = (code: EngineErrorCode): boolean => hasEngineCode(error, code);
  const internal = (message: string) => new ServiceError('internal_error', message, { cause: error });
  if (unreadRecord(error) !== undefined) {
    return unavailable('a part of the index could not be read and is being verified', error);
  }
  if (is('absent')) return unavailable('the index is being fetched', error);
  if (is('no_space')) return noSpace(error);
  if (is('no_memory')) return unavailable(noRoom, error, 30);
  if (is('io')) return storageUnavailable(error);
  if (is('deadline_exceeded')) return unavailable('the search did not end before its deadline', error);
  if (is('unsupported_version')) return internal('the index was written by another version of maxsimd');
  if (is('corrupt')) return internal('the index is damaged');
  return fromSystem(error);
}
