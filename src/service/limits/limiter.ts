/**
 * What the service asks of a limiter: admission by rate and concurrency, and reservations against the
 * monthly token allowance. One process that owns a data directory counts in memory; several nodes
 * count in Redis, and answer later.
 */

export interface RateAdmission {
  readonly admitted: boolean;
  /** Requests left in the current window after this one, for `RateLimit-Remaining`. */
  readonly remaining: number;
  /** Seconds until the next request fits (when refused) or until the window is empty again. */
  readonly retryAfterSeconds: number;
}

/** Hold on one concurrency slot. `release` is idempotent. */
export interface ConcurrencyPermit {
  release(): void;
}

/** Hold on input tokens of one calendar month, until they are in the ledger or will not be. `release` is idempotent. */
export interface TokenReservation {
  readonly inputTokens: bigint;
  release(): void;
}

export interface TokenReservationRequest {
  readonly tenantId: string;
  /** UTC month `YYYY-MM`. */
  readonly month: string;
  readonly inputTokens: bigint;
  /** Allowance of the month. */
  readonly allowance: bigint;
  /** Tokens the ledger holds for the month at this moment (in-flight reservations excluded). */
  readonly ledger: bigint;
}

export interface Limiter {
  /** Whether a limiter that nodes share cannot be asked; absent: this process has its own. */
  readonly isAway?: boolean;
  /** Sliding window: never more than `perMinute` admissions in any 60 s. A refused request leaves no trace. */
  admitRate(tenantId: string, perMinute: number, nowMs: number): RateAdmission | Promise<RateAdmission>;
  /** What a restart must not forget of a tenant's window; `undefined` when that is kept elsewhere, or there is nothing. */
  packedWindow(tenantId: string): Uint8Array | undefined;
  /** `undefined` when `max` slots are taken. */
  acquireSlot(
    tenantId: string,
    max: number,
  ): ConcurrencyPermit | undefined | Promise<ConcurrencyPermit | undefined>;
  /** `undefined` when ledger + reservations + inputTokens would exceed the allowance. */
  reserveTokens(request: TokenReservationRequest): TokenReservation | undefined;
}
