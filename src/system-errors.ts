/**
 * Failures of the operating system (Node's errors with an `E...` code), by consequence: what the machine does to
 * us passes, or its operator makes it pass, so it is `service_unavailable` and never a defect. The addon's errors
 * are classed beside their codes (`src/index/engine/engine-errors.ts`), SQLite's beside its driver.
 */
import { unavailable, type ServiceError } from './errors.ts';

const noSpaceCodes = ['ENOSPC', 'EDQUOT'];
/** A device that fails, is read-only, closed to us or away; descriptors, memory or locks that are used up. */
const unavailableCodes = [
  'EACCES',
  'EPERM',
  'EIO',
  'EROFS',
  'ENXIO',
  'ENODEV',
  'ESTALE',
  'ETIMEDOUT',
  'EBUSY',
  'EMFILE',
  'ENFILE',
  'EAGAIN',
  'ENOMEM',
  'ENOLCK',
];

export function withCode(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** What the machine did becomes a `ServiceError`; anything else is returned as it is. */
export function fromSystem(error: unknown): unknown {
  if (hasCode(error, ...noSpaceCodes)) return noSpace(error);
  return hasCode(error, ...unavailableCodes) ? storageUnavailable(error) : error;
}

export function noSpace(cause: unknown): ServiceError {
  return unavailable('no space is left for documents', cause, 30);
}

export function storageUnavailable(cause: unknown): ServiceError {
  return unavailable('the storage cannot be used at the moment', cause, 5);
}
