/** Where a service is, and how it is asked: what the user gave, checked. Loads nothing that only requests need. */
import { CommandFailure } from '../failure.ts';
import type { OnWait } from './retry.ts';

export interface Endpoint {
  /** Without a trailing slash; may carry a path (behind a proxy). */
  readonly url: string;
  readonly key: string;
  readonly timeoutMs: number;
  /** Before each wait for another attempt: what `--verbose` tells. */
  readonly onWait?: OnWait | undefined;
}

/** Checks what the user gave; a `CommandFailure` (usage) says what is wrong with it. */
export function endpointOf(
  url: string,
  key: string | undefined,
  timeoutMs: number,
  onWait?: OnWait,
): Endpoint {
  if (key === undefined || key === '') {
    throw new CommandFailure('usage_error', 'an API key is needed: --key KEY or MAXSIMD_API_KEY');
  }
  // fetch would quote a malformed header value in its error, and the value is a secret.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new CommandFailure('usage_error', 'the API key holds characters that no key has');
  }
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new CommandFailure('usage_error', '--url must be an http:// or https:// address');
  }
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '') {
    throw new CommandFailure('usage_error', '--url takes no credentials, query or fragment');
  }
  const base = `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '');
  return { url: base, key, timeoutMs, onWait };
}
