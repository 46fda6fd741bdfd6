/**
 * Sessions of operators in the console, which a browser holds in place of an operator's key. They are in the memory of this
 * process, by their digests, and end with it.
 */
import { createHash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';

export const operatorSessionMs = 3_600_000;
/** The session that was used longest ago ends when there are more. */
const sessionsMax = 100;

export class OperatorSessions {
  readonly #names: LRUCache<string, string>;

  constructor(nowMs: () => number = () => performance.now()) {
    const perf = { now: nowMs };
    this.#names = new LRUCache({ max: sessionsMax, ttl: operatorSessionMs, ttlResolution: 0, perf });
  }

  /** `operator`: the name for the audit log. */
  open(operator: string): string {
    const session = randomBytes(32).toString('base64url');
    this.#names.set(digestOf(session), operator);
    return session;
  }

  operatorOf(session: string | undefined): string | undefined {
    return session === undefined ? undefined : this.#names.get(digestOf(session));
  }

  end(session: string | undefined): void {
    if (session !== undefined) this.#names.delete(digestOf(session));
  }
}

function digestOf(session: string): string {
  return createHash('sha256').update(session).digest('hex');
}
