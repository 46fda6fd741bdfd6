import { CommandFailure } from '../failure.ts';

/**
 * An identifier as one segment of a path. fetch removes the segments `.` and `..` (RFC 3986 5.2.4), and proxies merge
 * empty ones: the request would concern another thing.
 */
export function pathSegment(id: string): string {
  if (id === '' || id === '.' || id === '..' || !id.isWellFormed())
    throw new CommandFailure('usage_error', `no identifier is ${JSON.stringify(id)}`);
  return encodeURIComponent(id);
}
