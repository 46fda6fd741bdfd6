/**
 * The monthly allowance of input tokens. What the ledger holds is read once per tenant and month and counted
 * on from there: where this process is the only one that charges tokens, a reading taken later could miss
 * what was settled meanwhile. Only the reading of a tenant without open holds may be forgotten: the ledger has what
 * they settled. Never charged more than reserved, never reserved more than allowed.
 *
 * Where other processes charge, too, readings have an age: they refuse early what the ledger would refuse in the end.
 */
import type { Tenant, UsageTotals } from '../../catalog/contract.ts';
import { ServiceError } from '../../errors.ts';
import { monthOf, secondsToNextMonth } from '../calendar-month.ts';
import type { Limiter, TokenReservation } from './limiter.ts';

interface LedgerMonth {
  recorded: bigint;
}

interface TenantLedger {
  readonly month: string;
  readonly ledger: Promise<LedgerMonth>;
  readonly readAtMs: number;
  /** Open now: what they settle is not in a reading that is taken before. */
  holds: number;
}

/** Readings kept, beside those with open holds. */
const ledgersMax = 1_000;

export class TokenAllowance {
  readonly #limiter: Limiter;
  readonly #usageTotals: (tenantId: string, month: string) => Promise<UsageTotals>;
  readonly #nowMs: () => number;
  readonly #ageMsMax: number;
  /** By tenant: one month each, the one asked for longest ago first. */
  readonly #ledgers = new Map<string, TenantLedger>();

  constructor(options: {
    readonly limiter: Limiter;
    readonly usageTotals: (tenantId: string, month: string) => Promise<UsageTotals>;
    readonly nowMs: () => number;
    /** The age of a reading; absent = this process alone charges tokens. */
    readonly ageMsMax?: number;
  }) {
    this.#limiter = options.limiter;
    this.#ageMsMax = options.ageMsMax ?? Infinity;
    this.#usageTotals = options.usageTotals;
    this.#nowMs = options.nowMs;
  }

  /** Tenants whose reading is kept. */
  get size(): number {
    return this.#ledgers.size;
  }

  /** A request's hold on the allowance of the current month, with nothing reserved yet. */
  async open(tenant: Tenant): Promise<TokenHold> {
    const month = monthOf(this.#nowMs());
    const entry = this.#entry(tenant.id, month);
    entry.holds += 1;
    const onEnd = (): void => {
      entry.holds -= 1;
    };
    try {
      const ledger = await entry.ledger;
      return new TokenHold({ limiter: this.#limiter, tenant, month, ledger, nowMs: this.#nowMs, onEnd });
    } catch (error) {
      onEnd();
      throw error;
    }
  }

  /** Open holds go on with what they have. */
  forgetAll(): void {
    this.#ledgers.clear();
  }

  #entry(tenantId: string, month: string): TenantLedger {
    const known = this.#ledgers.get(tenantId);
    const isFresh = known?.month === month && this.#nowMs() - known.readAtMs < this.#ageMsMax;
    const entry = isFresh ? known : this.#load(tenantId, month);
    this.#ledgers.delete(tenantId);
    this.#ledgers.set(tenantId, entry);
    for (const [oldest, { holds }] of this.#ledgers) {
      if (this.#ledgers.size <= ledgersMax) break;
      if (holds === 0) this.#ledgers.delete(oldest);
    }
    return entry;
  }

  #load(tenantId: string, month: string): TenantLedger {
    const ledger = this.#usageTotals(tenantId, month).then(({ inputTokens }) => ({ recorded: inputTokens }));
    const entry = { month, ledger, readAtMs: this.#nowMs(), holds: 0 };
    ledger.catch(() => {
      if (this.#ledgers.get(tenantId) === entry) this.#ledgers.delete(tenantId);
    });
    return entry;
  }
}

/** Tokens reserved for one request. `settle` or `release` ends it; the first of them counts. */
export class TokenHold {
  /** The month that is charged, also when the request ends in the next one. */
  readonly month: string;
  readonly #limiter: Limiter;
  readonly #tenant: Tenant;
  readonly #ledger: LedgerMonth;
  readonly #nowMs: () => number;
  readonly #onEnd: () => void;
  readonly #reservations: TokenReservation[] = [];
  #ended = false;

  constructor(parts: {
    readonly limiter: Limiter;
    readonly tenant: Tenant;
    readonly month: string;
    readonly ledger: LedgerMonth;
    readonly nowMs: () => number;
    readonly onEnd: () => void;
  }) {
    this.month = parts.month;
    this.#limiter = parts.limiter;
    this.#tenant = parts.tenant;
    this.#ledger = parts.ledger;
    this.#nowMs = parts.nowMs;
    this.#onEnd = parts.onEnd;
  }

  /** Tokens that the ledger leaves of the allowance, reservations of other requests not counted. */
  get remaining(): bigint {
    return this.#tenant.limits.inputTokens - this.#ledger.recorded;
  }

  get reserved(): bigint {
    return this.#reservations.reduce((sum, reservation) => sum + reservation.inputTokens, 0n);
  }

  /** Adds to the hold; false when the allowance does not hold that much. */
  tryReserve(inputTokens: bigint): boolean {
    const reservation = this.#limiter.reserveTokens({
      tenantId: this.#tenant.id,
      month: this.month,
      inputTokens,
      allowance: this.#tenant.limits.inputTokens,
      ledger: this.#ledger.recorded,
    });
    if (reservation === undefined) return false;
    this.#reservations.push(reservation);
    return true;
  }

  reserve(inputTokens: bigint): void {
    if (this.tryReserve(inputTokens)) return;
    throw tokenAllowanceExceeded(this.#nowMs());
  }

  /** The ledger holds `used` tokens of this request now. */
  settle(used: bigint): void {
    if (this.#end()) this.#ledger.recorded += used;
  }

  /** The request ends without an answer. `charged`: what was run for a caller who left. */
  release(charged = 0n): void {
    this.settle(charged);
  }

  /** Whether this was the first end. */
  #end(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    for (const reservation of this.#reservations) reservation.release();
    this.#onEnd();
    return true;
  }
}

export function tokenAllowanceExceeded(nowMs: number): ServiceError {
  return new ServiceError(
    'usage_limit_exceeded',
    'the monthly allowance of input tokens does not hold this request',
    { retryAfterSeconds: secondsToNextMonth(nowMs) },
  );
}
