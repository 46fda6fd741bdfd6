/** Correlation ids: a client's own when it is harmless in headers and logs, else a fresh ULID. */
import type { IncomingHttpHeaders } from 'node:http';
import { ulid } from 'ulid';

export const requestIdHeader = 'x-request-id';

const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

export function newRequestId(): string {
  return ulid();
}

export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers[requestIdHeader];
  return typeof given === 'string' && acceptable.test(given) ? given : newRequestId();
}
