/** The addon's errors as the service's: by consequence, with the cause kept. */
import { ServiceError } from '../../errors.ts';
import { fromSystem, hasCode, noSpace, storageUnavailable } from '../../system-errors.ts';

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

/** The record that the engine could not read, or did not find as it was written: it is to be verified. */
export function unreadRecord(error: unknown): UnreadRecord | undefined {
  const isUnread = error instanceof Error && 'segmentId' in error && 'record' in error;
  return isUnread ? { segmentId: Number(error.segmentId), record: Number(error.record) } : undefined;
}

/** Columns: part `parts[i]` of the file of segment `segmentIds[i]` was needed, and has not come yet. */
export interface AbsentParts {
  readonly segmentIds: Float64Array;
  readonly parts: Uint32Array;
}

export function absentParts(error: unknown): AbsentParts | undefined {
  return hasEngineCode(error, 'absent') ? (error as Error & AbsentParts) : undefined;
}

/** Operating errors, the system's too, become `ServiceError`s; anything else (a defect) is returned as it is. */
export function fromEngine(error: unknown): unknown {
  if (unreadRecord(error) !== undefined) {
    return new ServiceError(
      'service_unavailable',
      'a part of the index could not be read and is being verified',
      {
        retryAfterSeconds: 1,
        cause: error,
      },
    );
  }
  if (absentParts(error) !== undefined) {
    return new ServiceError('service_unavailable', 'the index is being fetched', {
      retryAfterSeconds: 1,
      cause: error,
    });
  }
  if (hasEngineCode(error, 'no_space')) return noSpace(error);
  if (hasEngineCode(error, 'no_memory')) {
    return new ServiceError('service_unavailable', 'the index does not fit the memory of the engine', {
      retryAfterSeconds: 30,
      cause: error,
    });
  }
  if (hasEngineCode(error, 'io')) return storageUnavailable(error);
  if (hasEngineCode(error, 'deadline_exceeded')) {
    return new ServiceError('service_unavailable', 'the search did not end before its deadline', {
      retryAfterSeconds: 1,
      cause: error,
    });
  }
  if (hasEngineCode(error, 'unsupported_version')) {
    return new ServiceError('internal_error', 'the index was written by another version of maxsimd', {
      cause: error,
    });
  }
  if (hasEngineCode(error, 'corrupt')) {
    return new ServiceError('internal_error', 'the index is damaged', { cause: error });
  }
  return fromSystem(error);
}
