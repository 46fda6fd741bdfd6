/**
 * The interface of limiters: admission by rate and concurrency, and reservations of tokens of the monthly
 * allowance. A process that owns a data directory counts in memory. Nodes count in Redis, and answer asynchronously.
 */

/** A limit of an API key, which applies beside that of its tenant. */
export interface KeyRate {
  readonly keyId: string;
  readonly perMinute: number;
}

/** Keys and tenants have names of their own in a limiter. */
export function keyName(keyId: string): string {
  return `key:${keyId}`;
}

export interface RateAdmission {
  readonly admitted: boolean;
  /** Requests that the current window still admits, for `RateLimit-Remaining`. */
  readonly remaining: number;
  /** After a refusal: seconds until the next request fits. Otherwise: seconds until the window is empty again. */
  readonly retryAfterSeconds: number;
  /** The figures are those of the key's limit: it refused, or has less left than the tenant. */
  readonly isOfKey?: true;
}

/** One concurrency slot. `release` is idempotent. */
export interface ConcurrencyPermit {
  release(): void;
}

/** Input tokens of one calendar month that are reserved until the ledger has them, or never will. `release` is idempotent. */
export interface TokenReservation {
  readonly inputTokens: bigint;
  release(): void;
}

export interface TokenReservationRequest {
  readonly tenantId: string;
  /** UTC month `YYYY-MM`. */
  readonly month: string;
  readonly inputTokens: bigint;
  readonly allowance: bigint;
  /** Tokens of the month that the ledger holds now, without reservations. */
  readonly ledger: bigint;
}

export interface Limiter {
  /** Whether the limiter that nodes share cannot be asked; absent where this process has its own. */
  readonly isAway?: boolean;
  /** Asks it, so that `isAway` is true of this moment. Never rejects. */
  ping?(): Promise<void>;
  /** Admits at most `perMinute` requests in any 60 s, of the tenant and of the key. A refused request counts for neither. */
  admitRate(
    tenantId: string,
    perMinute: number,
    nowMs: number,
    key?: KeyRate,
  ): RateAdmission | Promise<RateAdmission>;
  /** The window of a tenant, for a restart; `undefined` when it is empty, or kept elsewhere. */
  packedWindow(tenantId: string): Uint8Array | undefined;
  /** `undefined` when the tenant, or the key with this `keyName`, has `max` slots. */
  acquireSlot(
    name: string,
    max: number,
  ): ConcurrencyPermit | undefined | Promise<ConcurrencyPermit | undefined>;
  /** `undefined` when ledger + reservations + inputTokens would exceed the allowance. */
  reserveTokens(request: TokenReservationRequest): TokenReservation | undefined;
}
