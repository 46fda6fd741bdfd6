/** Request ids: the client's own if it is harmless in headers and logs, else a fresh ULID. */
import { randomFillSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { ulid } from 'ulid';

export const requestIdHeader = 'x-request-id';

const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/** Random bytes drawn ahead. The library would ask the system for each of its sixteen characters. */
const drawn = new Uint8Array(1024);
let used = drawn.length;

export function newRequestId(): string {
  return ulid(Date.now(), randomFraction);
}

/** One of 256 values in 0..1. The library keeps five bits of it. */
function randomFraction(): number {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  return drawn[used++]! / 256;
}

export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers[requestIdHeader];
  return typeof given === 'string' && acceptable.test(given) ? given : newRequestId();
}
