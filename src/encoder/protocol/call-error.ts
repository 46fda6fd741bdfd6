/** Errors as gRPC has them, at the server and at the client. */
import { Metadata, type status } from '@grpc/grpc-js';
import { retryDelayTrailer } from './wire.ts';

export interface CallError extends Error {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/** `retryDelayMs`: how long to wait before another try. */
export function callError(code: status, message: string, retryDelayMs?: number): CallError {
  const metadata = new Metadata();
  if (retryDelayMs !== undefined) metadata.set(retryDelayTrailer, String(Math.ceil(retryDelayMs)));
  return Object.assign(new Error(message), { code, details: message, metadata });
}

export function isCallError(error: unknown): error is CallError {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && 'metadata' in error;
}
