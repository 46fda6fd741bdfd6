/**
 * The limiter of one process, in memory. A restart empties the slots, whose requests ended with the process. Rate windows are
 * recorded with the usage of each answer, and a restart reads them again. A process that is killed loses only the
 * admissions that it had not answered. The catalog has the token ledger, and the limiter has the reservations.
 *
 * A tenant without admissions in its window, slots or reservations takes no memory.
 */
import type { Catalog } from '../../catalog/contract.ts';
import { assertInvariant } from '../../errors.ts';
import { monthOf } from '../calendar-month.ts';
import { once } from '../once.ts';
import { keyName } from './limiter.ts';
import type {
  ConcurrencyPermit,
  KeyRate,
  Limiter,
  RateAdmission,
  TokenReservation,
  TokenReservationRequest,
} from './limiter.ts';
import { RateWindow, windowMs } from './rate-window.ts';

/** One admission looks at no more idle tenants than this. */
const sweepMax = 2;
/**
 * Longer than any request. The window is recorded with the usage of a request, in the month in which the request began, so a
 * restart must read the last month, too, for this long.
 */
const recordedMsMax = 86_400_000;

interface RateClaim {
  readonly name: string;
  readonly window: RateWindow;
  readonly remaining: number;
  /** 0: it fits now. */
  readonly waitMs: number;
  readonly isOfKey?: true;
}

export class MemoryLimiter implements Limiter {
  /** The tenant that was admitted longest ago comes first. */
  readonly #windows = new Map<string, RateWindow>();
  readonly #slots = new Map<string, number>();
  readonly #reserved = new Map<string, bigint>();

  /** A limiter with the windows that an earlier process left. */
  static async restore(catalog: Pick<Catalog, 'rateWindows'>, nowMs: number): Promise<MemoryLimiter> {
    const limiter = new MemoryLimiter();
    const now = Math.floor(nowMs);
    const recorded = Map.groupBy(
      await catalog.rateWindows(monthOf(nowMs - recordedMsMax)),
      ({ tenantId }) => tenantId,
    );
    const windows = [...recorded].map(([tenantId, some]): [string, RateWindow] => [
      tenantId,
      RateWindow.unpack(
        some.map(({ packed }) => packed),
        now,
      ),
    ]);
    const inOrder = windows.toSorted(([, left], [, right]) => left.newestMs - right.newestMs);
    for (const [tenantId, window] of inOrder) if (window.count > 0) limiter.#windows.set(tenantId, window);
    return limiter;
  }

  packedWindow(tenantId: string): Uint8Array | undefined {
    return this.#windows.get(tenantId)?.pack();
  }

  /** `nowMs`: by a clock that never steps back. */
  admitRate(tenantId: string, perMinute: number, nowMs: number, key?: KeyRate): RateAdmission {
    // The present is rounded down and admissions are rounded up, so that no 60 s ever hold one too many.
    const floor = Math.floor(nowMs);
    this.#dropIdle(floor);
    const claims = [this.#claim(tenantId, perMinute, floor)];
    if (key !== undefined)
      claims.push({ ...this.#claim(keyName(key.keyId), key.perMinute, floor), isOfKey: true });
    const waits = claims.filter(({ waitMs }) => waitMs > 0);
    if (waits.length > 0) {
      const { waitMs, isOfKey } = waits.reduce((one, two) => (two.waitMs > one.waitMs ? two : one));
      return {
        admitted: false,
        remaining: 0,
        retryAfterSeconds: wholeSeconds(waitMs),
        ...(isOfKey && { isOfKey }),
      };
    }
    for (const { name, window } of claims) {
      window.add(Math.ceil(nowMs));
      this.#windows.delete(name);
      this.#windows.set(name, window);
    }
    const { remaining, isOfKey } = claims.reduce((one, two) => (two.remaining < one.remaining ? two : one));
    return {
      admitted: true,
      remaining,
      retryAfterSeconds: wholeSeconds(windowMs),
      ...(isOfKey && { isOfKey }),
    };
  }

  /** One more request of a tenant or a key: the time until it fits, and what is left after it. */
  #claim(name: string, perMinute: number, floorMs: number): RateClaim {
    const window = this.#windows.get(name) ?? new RateWindow();
    window.expire(floorMs);
    const remaining = perMinute - window.count - 1;
    if (remaining >= 0) return { name, window, remaining, waitMs: 0 };
    // The next request fits when all but `perMinute - 1` admissions have left. With a limit of 0 none ever fits.
    const waitMs = perMinute < 1 ? windowMs : window.msUntilExpired(window.count - perMinute, floorMs);
    return { name, window, remaining, waitMs };
  }

  /** Fills the window as if `count` requests had been admitted evenly over the last 60 s. */
  fillWindow(tenantId: string, count: number, nowMs: number): void {
    const now = Math.floor(nowMs);
    const window = new RateWindow();
    for (let place = 1; place <= count; place += 1) {
      window.add(Math.ceil(now - windowMs + (place * windowMs) / count));
    }
    this.#windows.delete(tenantId);
    this.#windows.set(tenantId, window);
  }

  acquireSlot(tenantId: string, max: number): ConcurrencyPermit | undefined {
    const taken = this.#slots.get(tenantId) ?? 0;
    if (taken >= max) return undefined;
    this.#slots.set(tenantId, taken + 1);
    return { release: once(() => this.#releaseSlot(tenantId)) };
  }

  reserveTokens(request: TokenReservationRequest): TokenReservation | undefined {
    const { tenantId, month, inputTokens, allowance, ledger } = request;
    assertInvariant(inputTokens >= 0n, 'a reservation is not negative');
    const key = `${month} ${tenantId}`;
    const reserved = this.#reserved.get(key) ?? 0n;
    if (ledger + reserved + inputTokens > allowance) return undefined;
    this.#reserved.set(key, reserved + inputTokens);
    return { inputTokens, release: once(() => this.#giveBack(key, inputTokens)) };
  }

  get size(): number {
    return this.#windows.size + this.#slots.size + this.#reserved.size;
  }

  #dropIdle(floorMs: number): void {
    let looked = 0;
    for (const [tenantId, window] of this.#windows) {
      if (looked === sweepMax) return;
      looked++;
      window.expire(floorMs);
      if (window.count > 0) return;
      this.#windows.delete(tenantId);
    }
  }

  #releaseSlot(tenantId: string): void {
    const left = (this.#slots.get(tenantId) ?? 0) - 1;
    assertInvariant(left >= 0, 'a slot is released once');
    if (left === 0) this.#slots.delete(tenantId);
    else this.#slots.set(tenantId, left);
  }

  #giveBack(key: string, inputTokens: bigint): void {
    const left = (this.#reserved.get(key) ?? 0n) - inputTokens;
    assertInvariant(left >= 0n, 'a reservation ends once');
    if (left === 0n) this.#reserved.delete(key);
    else this.#reserved.set(key, left);
  }
}

function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
