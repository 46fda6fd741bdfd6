/**
 * Failures of the operating system (Node's errors with an `E...` code). They pass, or the operator ends them, so they are
 * `service_unavailable` and never a defect. The addon's errors are classed beside their codes
 * (`src/index/engine/engine-errors.ts`), and SQLite's beside its driver.
 */
import { unavailable, type ServiceError } from './errors.ts';

const noSpaceCodes = ['ENOSPC', 'EDQUOT'];
/** A device fails, is read-only, away or not permitted; or descriptors, memory or locks are used up. */
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

/** A failure of the machine becomes a `ServiceError`. Other errors are returned unchanged. */
export function fromSystem(error: unknown): unknown {
  if (hasCode(error, ...noSpaceCodes)) return noSpace(error);
  return hasCode(error, ...unavailableCodes) ? storageUnavailable(error) : error;
}

export function noSpace(cause: unknown): ServiceError {
  return unavailable('the disk has no space left for documents', cause, 30);
}

export function storageUnavailable(cause: unknown): ServiceError {
  return unavailable('the storage cannot be used now', cause, 5);
}
