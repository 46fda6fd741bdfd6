/**
 * The monthly allowance of input tokens. A request is never charged more than it reserved, and never reserves more than is
 * allowed.
 *
 * The ledger is read once for each tenant and month. From then on this process adds what it settles, because a second reading
 * that is taken meanwhile could miss a settlement. A reading may be forgotten when its tenant has no open hold: the ledger
 * has all that they settled.
 *
 * Where other processes charge tokens, too, a reading is used for `ageMsMax`. It only refuses early what the ledger would refuse
 * in the end.
 */
import type { Tenant, UsageTotals } from '../../catalog/contract.ts';
import { ServiceError } from '../../errors.ts';
import { monthOf, secondsToNextMonth } from '../calendar-month.ts';
import type { Limiter, TokenReservation } from './limiter.ts';
import { raisingCommand } from './raising.ts';

/** The tokens of one month that the ledger is known to hold. */
interface LedgerMonth {
  recorded: bigint;
}

interface TenantLedger {
  readonly month: string;
  readonly ledger: Promise<LedgerMonth>;
  readonly readAtMs: number;
  /** The number of open holds. A reading that is taken now would not have what they settle. */
  holds: number;
}

/** Readings that are kept, beside those with open holds. */
const ledgersMax = 1_000;

export interface TokenAllowanceDeps {
  readonly limiter: Limiter;
  readonly usageTotals: (tenantId: string, month: string) => Promise<UsageTotals>;
  readonly nowMs: () => number;
  /** How long a reading is used; absent = this process alone charges tokens. */
  readonly ageMsMax?: number;
}

export class TokenAllowance {
  readonly #deps: TokenAllowanceDeps;
  /** By tenant, one month each. The tenant that was asked for longest ago comes first. */
  readonly #ledgers = new Map<string, TenantLedger>();

  constructor(deps: TokenAllowanceDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#ledgers.size;
  }

  /** Opens a hold on the allowance of the current month. Nothing is reserved yet. */
  async open(tenant: Tenant): Promise<TokenHold> {
    const { limiter, nowMs } = this.#deps;
    const month = monthOf(nowMs());
    const entry = this.#entry(tenant.id, month);
    entry.holds += 1;
    const onEnd = (): void => {
      entry.holds -= 1;
    };
    try {
      return new TokenHold({ limiter, tenant, month, ledger: await entry.ledger, nowMs, onEnd });
    } catch (error) {
      onEnd();
      throw error;
    }
  }

  /** Forgets all readings. Open holds go on with theirs. */
  forgetAll(): void {
    this.#ledgers.clear();
  }

  #entry(tenantId: string, month: string): TenantLedger {
    const known = this.#ledgers.get(tenantId);
    const { nowMs, ageMsMax = Infinity } = this.#deps;
    const isFresh = known?.month === month && nowMs() - known.readAtMs < ageMsMax;
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
    const { usageTotals, nowMs } = this.#deps;
    const ledger = usageTotals(tenantId, month).then(({ inputTokens }) => ({ recorded: inputTokens }));
    const entry = { month, ledger, readAtMs: nowMs(), holds: 0 };
    ledger.catch(() => {
      if (this.#ledgers.get(tenantId) === entry) this.#ledgers.delete(tenantId);
    });
    return entry;
  }
}

export interface TokenHoldDeps {
  readonly limiter: Limiter;
  readonly tenant: Tenant;
  readonly month: string;
  readonly ledger: LedgerMonth;
  readonly nowMs: () => number;
  readonly onEnd: () => void;
}

/** Tokens that one request has reserved. The first `settle` or `release` ends the hold. */
export class TokenHold {
  /** The month that is charged, even when the request ends in the next one. */
  readonly month: string;
  readonly #deps: TokenHoldDeps;
  readonly #reservations: TokenReservation[] = [];
  #ended = false;

  constructor(deps: TokenHoldDeps) {
    this.#deps = deps;
    this.month = deps.month;
  }

  /** The tokens that the ledger leaves of the allowance. Reservations of other requests do not count. */
  get remaining(): bigint {
    const { tenant, ledger } = this.#deps;
    return tenant.limits.inputTokens - ledger.recorded;
  }

  get reserved(): bigint {
    return this.#reservations.reduce((sum, reservation) => sum + reservation.inputTokens, 0n);
  }

  /** Reserves more tokens. Returns false when the allowance does not hold them. */
  tryReserve(inputTokens: bigint): boolean {
    const { limiter, tenant, month, ledger } = this.#deps;
    const reservation = limiter.reserveTokens({
      tenantId: tenant.id,
      month,
      inputTokens,
      allowance: tenant.limits.inputTokens,
      ledger: ledger.recorded,
    });
    if (reservation === undefined) return false;
    this.#reservations.push(reservation);
    return true;
  }

  reserve(inputTokens: bigint): void {
    if (!this.tryReserve(inputTokens)) throw tokenAllowanceExceeded(this.#deps.tenant, this.#deps.nowMs());
  }

  /** Says that the ledger holds `used` tokens of this request now. */
  settle(used: bigint): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const reservation of this.#reservations) reservation.release();
    this.#deps.onEnd();
    this.#deps.ledger.recorded += used;
  }

  /** Ends a request without an answer. `charged`: the tokens that were run for a caller who left. */
  release(charged = 0n): void {
    this.settle(charged);
  }
}

export function tokenAllowanceExceeded(tenant: Tenant, nowMs: number): ServiceError {
  return new ServiceError(
    'usage_limit_exceeded',
    `the tenant may use ${tenant.limits.inputTokens} input tokens a month, and what is left does not hold this ` +
      `request. An operator raises the limit with: ${raisingCommand(tenant, 'inputTokens')}`,
    { retryAfterSeconds: secondsToNextMonth(nowMs) },
  );
}
