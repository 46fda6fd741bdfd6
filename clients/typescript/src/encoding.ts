/** Encodes values that a caller gives for a request. Throws a `MaxsimdError` where no request can carry one. */
import { MaxsimdError } from './errors.ts';

/** A path of these segments, and a query. */
export function requestTarget(
  segments: readonly string[],
  query: Readonly<Record<string, string>> | undefined,
): string {
  const path = segments.map((segment) => `/${pathSegment(segment)}`).join('');
  return query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`;
}

/**
 * fetch removes the segments `.` and `..` (RFC 3986 5.2.4), and proxies merge empty ones: the path would name another
 * thing, such as the index of a document. `%2e%2e` becomes `%252e%252e`, which is no such segment.
 */
function pathSegment(text: string): string {
  let encoded: string;
  try {
    encoded = encodeURIComponent(text);
  } catch (error) {
    throw new MaxsimdError('an id holds half a surrogate pair, which no address can carry', { cause: error });
  }
  if (encoded === '' || encoded === '.' || encoded === '..')
    throw new MaxsimdError(`no id is ${JSON.stringify(encoded)}: nothing was sent`);
  return encoded;
}

/** A number that JSON does not have is refused: JSON.stringify would send `null`. */
export function jsonText(value: object): string {
  try {
    return JSON.stringify(value, (_key, field: unknown) => {
      if (typeof field === 'number' && !Number.isFinite(field)) throw new TypeError(`JSON has no ${field}`);
      return field;
    });
  } catch (error) {
    throw new MaxsimdError(`the request is no JSON: ${(error as Error).message}`, { cause: error });
  }
}
