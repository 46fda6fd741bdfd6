/** The addon's errors as the service's: by consequence, with the cause kept. */
import { ServiceError } from '../errors.ts';

export type EngineErrorCode =
  | 'invalid_argument'
  | 'closed'
  | 'io'
  | 'no_space'
  | 'corrupt'
  | 'unsupported_version'
  | 'deadline_exceeded';

const retryAfterNoSpaceSeconds = 30;
const retryAfterIoSeconds = 5;

export function hasEngineCode(error: unknown, code: EngineErrorCode): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Operating errors become `ServiceError`s; anything else (a defect) is returned as it is. */
export function fromEngine(error: unknown): unknown {
  if (hasEngineCode(error, 'no_space')) {
    return new ServiceError('service_unavailable', 'no space is left for documents', {
      retryAfterSeconds: retryAfterNoSpaceSeconds,
      cause: error,
    });
  }
  if (hasEngineCode(error, 'io')) {
    return new ServiceError('service_unavailable', 'the storage cannot be used at the moment', {
      retryAfterSeconds: retryAfterIoSeconds,
      cause: error,
    });
  }
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
  return error;
}
