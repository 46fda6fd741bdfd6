/**
 * The limiter of several nodes, in Redis, and the only importer of its client: sliding windows and concurrency slots by
 * scripts (`redis-scripts.ts`). A slot is a lease that is renewed while its request runs and runs out with its node.
 * Reservations of tokens stay with the node: the catalog decides the allowance.
 *
 * While Redis is away each node admits its share by itself, the limit divided by the nodes that live, at least 1. The
 * window of a share starts full, as if its admissions had come evenly: losing Redis gives nobody a burst. And for a
 * window after Redis has come back, perhaps without its memory, a request must fit the share, too. Slots that a node
 * holds by then, its share's too, become leases before it asks for others. So a tenant gets at most one request a node
 * beyond its limit, and only where the limit is below the number of nodes; but that what Redis had admitted in the last
 * minute, and slots that are held still, come on top of the shares at the moment it is lost.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { explained, isRefusal } from '../../away-reasons.ts';
import { observed, type CallObserver } from '../../call-observer.ts';
import { ServiceError } from '../../errors.ts';
import type {
  ConcurrencyPermit,
  Limiter,
  RateAdmission,
  TokenReservation,
  TokenReservationRequest,
} from './limiter.ts';
import { MemoryLimiter } from './memory-limiter.ts';
import { windowMs } from './rate-window.ts';
import { acquireScript, admitScript, renewScript } from './redis-scripts.ts';

export interface RedisLimiterOptions {
  /** `redis://user:password@host:port/database`, or `rediss://` for TLS. */
  readonly url: string;
  /** Nodes that live now, this one among them. */
  readonly nodes: () => number;
  /** Redis is away, or back: for the log and the metrics. */
  readonly onChange: (isAway: boolean, cause?: Error) => void;
  /** Each script, by name. */
  readonly onCall?: CallObserver;
  /** How long slots of a node that died stay taken; 15 s unless given. */
  readonly leaseMs?: number;
  /** Begins every key; `maxsimd:` unless given. */
  readonly prefix?: string;
  /** Admissions are of the times that callers give, not of Redis' own: for tests. */
  readonly usesGivenTime?: boolean;
}

/**
 * A local command takes a tenth of a millisecond, but this process or Redis may pause for some hundred. A loss refuses what
 * is beyond the share for a minute; one that is noticed later only makes the requests of that second wait.
 */
const answerMsMax = 1_000;
const connectMsMax = 2_000;
/** For what the client sends by itself when it connects. */
const silenceMsMax = 10_000;
const reconnectMsMax = 1_000;
const defaultLeaseMs = 15_000;

interface Commands {
  admit(...args: readonly (string | number)[]): Promise<[number, number, string]>;
  acquire(...args: readonly (string | number)[]): Promise<number>;
  renew(...args: readonly (string | number)[]): Promise<number>;
}

export class RedisLimiter implements Limiter {
  readonly #options: RedisLimiterOptions;
  readonly #redis: Redis & Commands;
  readonly #prefix: string;
  readonly #leaseMs: number;
  readonly #node = randomUUID();
  /** Shares, and the slots of this node in every state. */
  readonly #local = new MemoryLimiter();
  /** Slots that this node has given, by the names of their leases, with their tenants. */
  readonly #leases = new Map<string, string>();
  /** Shares in use since Redis was lost, by tenant. */
  readonly #shared = new Map<string, number>();
  readonly #renewing: NodeJS.Timeout;
  #isAway = true;
  #connectionError: Error | undefined;
  /** Since Redis was last there this node may have missed something of it. */
  #wasLost = false;
  /** Until then, by the clock that nobody sets, shares hold, too. */
  #recoveredAt = 0;
  #count = 0;
  #closed = false;

  private constructor(options: RedisLimiterOptions) {
    this.#options = options;
    this.#prefix = options.prefix ?? 'maxsimd:';
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs;
    const redis = new Redis(options.url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: silenceMsMax,
      connectTimeout: connectMsMax,
      retryStrategy: (attempt) => Math.min(reconnectMsMax, 50 * attempt),
    });
    redis.defineCommand('admit', { numberOfKeys: 2, lua: admitScript });
    redis.defineCommand('acquire', { numberOfKeys: 2, lua: acquireScript });
    redis.defineCommand('renew', { numberOfKeys: 2, lua: renewScript });
    this.#redis = redis as Redis & Commands;
    // The commands report that something fails, this why there is no connection.
    redis.on('error', (error) => {
      this.#connectionError = error;
    });
    redis.on('ready', () => void this.#back());
    redis.on('close', () => this.#lost(this.#connectionError ?? new Error('the connection was closed')));
    this.#renewing = setInterval(() => void this.#keepLeases(), this.#leaseMs / 3).unref();
  }

  /** Connects; without Redis it begins with shares. Rejects when Redis is there and refuses this program. */
  static async connect(options: RedisLimiterOptions): Promise<RedisLimiter> {
    const limiter = new RedisLimiter(options);
    await limiter.#redis.connect().catch((error: unknown) => {
      const cause = limiter.#connectionError ?? (error as Error);
      if (isRefusal(cause)) {
        limiter.close();
        throw explained(new ServiceError('service_unavailable', 'the limiter cannot be used', { cause }));
      }
      limiter.#wasLost = true;
      options.onChange(true, cause);
    });
    return limiter;
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  async admitRate(tenantId: string, perMinute: number, nowMs: number): Promise<RateAdmission> {
    if (this.#sharesHold()) {
      const admission = this.#admitShare(tenantId, perMinute, nowMs);
      if (this.#isAway || !admission.admitted) return admission;
    }
    try {
      const given = this.#options.usesGivenTime === true ? nowMs : -1;
      const key = `${this.#prefix}rate:${tenantId}`;
      const [admitted, remaining, waitMs] = await this.#observed('admit', () =>
        this.#redis.admit(key, this.#clock(), this.#name(), perMinute, windowMs, given),
      );
      const retryAfterSeconds = Math.max(1, Math.ceil(Number(waitMs) / 1000));
      return { admitted: admitted === 1, remaining, retryAfterSeconds };
    } catch (error) {
      this.#lost(error as Error);
      return this.#admitShare(tenantId, perMinute, nowMs);
    }
  }

  /** Kept by Redis. */
  packedWindow(): undefined {
    return undefined;
  }

  async acquireSlot(tenantId: string, max: number): Promise<ConcurrencyPermit | undefined> {
    const lease = this.#name();
    let local = this.#acquireLocal(tenantId, max);
    if (local === undefined) return undefined;
    if (!this.#isAway) {
      try {
        const taken = await this.#observed('acquire', () =>
          this.#redis.acquire(this.#slots(tenantId), this.#clock(), lease, max, this.#leaseMs, -1),
        );
        if (taken === 0) {
          local.release();
          return undefined;
        }
      } catch (error) {
        this.#lost(error as Error);
        local.release();
        local = this.#acquireLocal(tenantId, max);
        if (local === undefined) return undefined;
      }
    }
    const permit = local;
    this.#leases.set(lease, tenantId);
    return {
      release: () => {
        permit.release();
        if (!this.#leases.delete(lease)) return;
        // One that cannot be given back runs out.
        this.#observed('release', () => this.#redis.zrem(this.#slots(tenantId), lease)).catch(
          () => undefined,
        );
      },
    };
  }

  reserveTokens(request: TokenReservationRequest): TokenReservation | undefined {
    return this.#local.reserveTokens(request);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#renewing);
    this.#redis.disconnect();
  }

  #sharesHold(): boolean {
    if (this.#isAway) return true;
    if (performance.now() < this.#recoveredAt) return true;
    this.#shared.clear();
    return false;
  }

  #admitShare(tenantId: string, perMinute: number, nowMs: number): RateAdmission {
    const share = this.#shareOf(perMinute);
    // A window that was full of another share would refuse, or admit, their difference at once.
    if (this.#shared.get(tenantId) !== share) {
      this.#shared.set(tenantId, share);
      this.#local.fillWindow(tenantId, share, nowMs);
    }
    return this.#local.admitRate(tenantId, share, nowMs);
  }

  /** What this node holds counts in every state: a share is what the slots that Redis gave leave of it. */
  #acquireLocal(tenantId: string, max: number): ConcurrencyPermit | undefined {
    const limit = this.#sharesHold() ? this.#shareOf(max) : Infinity;
    return this.#local.acquireSlot(tenantId, limit);
  }

  #shareOf(limit: number): number {
    return limit < 1 ? 0 : Math.max(1, Math.floor(limit / Math.max(1, this.#options.nodes())));
  }

  #lost(cause: Error): void {
    if (this.#isAway || this.#closed) return;
    this.#isAway = true;
    this.#wasLost = true;
    this.#options.onChange(true, cause);
    // A connection that does not answer is not used again.
    if (this.#redis.status === 'ready') this.#redis.disconnect(true);
  }

  async #back(): Promise<void> {
    try {
      // Redis may have forgotten them, and never knew those of a share.
      if (this.#leases.size > 0) await this.#renewAll();
    } catch {
      if (this.#redis.status === 'ready') this.#redis.disconnect(true);
      return;
    }
    this.#recoveredAt = this.#wasLost ? performance.now() + windowMs : 0;
    this.#wasLost = false;
    this.#connectionError = undefined;
    this.#isAway = false;
    this.#options.onChange(false);
  }

  async #keepLeases(): Promise<void> {
    if (this.#isAway) return;
    await this.#renewAll().catch((error: unknown) => this.#lost(error as Error));
  }

  async #renewAll(): Promise<void> {
    const renewals = [...this.#leases].map(([lease, tenantId]) =>
      this.#observed('renew', () =>
        this.#redis.renew(this.#slots(tenantId), this.#clock(), lease, this.#leaseMs, -1),
      ),
    );
    await Promise.all(renewals);
  }

  #observed<T>(operation: string, work: () => Promise<T>): Promise<T> {
    return observed(this.#options.onCall, operation, () => inTime(work()));
  }

  #name(): string {
    this.#count += 1;
    return `${this.#node}:${this.#count}`;
  }

  #slots(tenantId: string): string {
    return `${this.#prefix}slots:${tenantId}`;
  }

  #clock(): string {
    return `${this.#prefix}clock`;
  }
}

/**
 * Rejects if there is no answer in time. Once a process goes on that was stopped, its timers are due before its sockets are
 * read: an answer that lies there has come in time.
 */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const reject = (): void => late.reject(new Error(`no answer for ${answerMsMax} ms`));
  const timer = setTimeout(() => setImmediate(reject), answerMsMax);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
