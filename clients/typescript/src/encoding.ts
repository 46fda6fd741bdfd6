/** Encodes the caller's values for a request. Throws a `MaxsimdError` if no request can carry a value. */
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
 * fetch removes the segments `.` and `..` (RFC 3986 5.2.4), and proxies merge empty ones. The path would then name another
 * thing, such as the index of a document. `%2e%2e` becomes `%252e%252e`, which is safe.
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

/** Refuses NaN and infinities, for which JSON.stringify would send `null`. */
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
