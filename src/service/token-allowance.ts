/**
 * The monthly allowance of input tokens. What the ledger holds is read once per tenant and month and counted
 * on from there: this process is the only one that charges tokens, and a reading taken later could miss
 * what was settled meanwhile. Never charged more than reserved, never reserved more than allowed.
 */
import type { Tenant, UsageTotals } from '../catalog/contract.ts';
import { ServiceError } from '../errors.ts';
import { monthOf, secondsToNextMonth } from './calendar-month.ts';
import type { Limiter, TokenReservation } from './limiter.ts';

interface LedgerMonth {
  recorded: bigint;
}

export class TokenAllowance {
  readonly #limiter: Limiter;
  readonly #usageTotals: (tenantId: string, month: string) => Promise<UsageTotals>;
  readonly #nowMs: () => number;
  /** By tenant: one month each. */
  readonly #ledgers = new Map<string, { readonly month: string; readonly ledger: Promise<LedgerMonth> }>();

  constructor(options: {
    readonly limiter: Limiter;
    readonly usageTotals: (tenantId: string, month: string) => Promise<UsageTotals>;
    readonly nowMs: () => number;
  }) {
    this.#limiter = options.limiter;
    this.#usageTotals = options.usageTotals;
    this.#nowMs = options.nowMs;
  }

  /** A request's hold on the allowance of the current month, with nothing reserved yet. */
  async open(tenant: Tenant): Promise<TokenHold> {
    const month = monthOf(this.#nowMs());
    const known = this.#ledgers.get(tenant.id);
    const ledger = known?.month === month ? known.ledger : this.#load(tenant.id, month);
    return new TokenHold({
      limiter: this.#limiter,
      tenant,
      month,
      ledger: await ledger,
      nowMs: this.#nowMs,
    });
  }

  #load(tenantId: string, month: string): Promise<LedgerMonth> {
    const ledger = this.#usageTotals(tenantId, month).then(({ inputTokens }) => ({ recorded: inputTokens }));
    const entry = { month, ledger };
    this.#ledgers.set(tenantId, entry);
    ledger.catch(() => {
      if (this.#ledgers.get(tenantId) === entry) this.#ledgers.delete(tenantId);
    });
    return ledger;
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
  readonly #reservations: TokenReservation[] = [];
  #ended = false;

  constructor(parts: {
    readonly limiter: Limiter;
    readonly tenant: Tenant;
    readonly month: string;
    readonly ledger: LedgerMonth;
    readonly nowMs: () => number;
  }) {
    this.month = parts.month;
    this.#limiter = parts.limiter;
    this.#tenant = parts.tenant;
    this.#ledger = parts.ledger;
    this.#nowMs = parts.nowMs;
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
    throw new ServiceError(
      'usage_limit_exceeded',
      'the monthly allowance of input tokens does not hold this request',
      {
        retryAfterSeconds: secondsToNextMonth(this.#nowMs()),
      },
    );
  }

  /** The ledger holds `used` tokens of this request now. */
  settle(used: bigint): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#ledger.recorded += used;
    let left = used;
    for (const reservation of this.#reservations) {
      const share = left < reservation.inputTokens ? left : reservation.inputTokens;
      reservation.settle(share);
      left -= share;
    }
  }

  /** Nothing was charged. */
  release(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const reservation of this.#reservations) reservation.release();
  }
}
