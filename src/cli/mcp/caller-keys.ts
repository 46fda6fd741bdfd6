/**
 * Tells callers whom the service knows from all others. Each call of a tool brings its key to the service anyway, so a key
 * that was accepted lately is not asked for again.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Maxsimd } from '../../../clients/typescript/src/client.ts';
import { ApiError } from '../../../clients/typescript/src/errors.ts';

const knownMs = 600_000;
const knownMax = 1_000;

export class CallerKeys {
  /** Digests of keys. */
  readonly #known = new LRUCache<string, true>({ max: knownMax, ttl: knownMs });

  /** Throws the error of the service if it does not know the key, or cannot be asked. */
  async check(key: string, client: Maxsimd, signal: AbortSignal): Promise<void> {
    const digest = createHash('sha256').update(key).digest('base64');
    if (this.#known.has(digest)) return;
    try {
      await client.request(
        { method: 'GET', path: ['v1', 'indexes'], query: { limit: '1' }, isSafe: true },
        { signal },
      );
    } catch (error) {
      if (!isOfKnownCaller(error)) throw error;
    }
    this.#known.set(digest, true);
  }
}

/** The service looks at the key first. So it knows a caller whom it refuses for a limit or a suspension. */
function isOfKnownCaller(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 429 || error.status === 403);
}
