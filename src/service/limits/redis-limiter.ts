/**
 * The limiter that nodes share, in Redis, and the only importer of its client. Scripts (`redis-scripts.ts`) keep sliding
 * windows and concurrency slots. A slot is a lease. Its node renews it while the request runs, and it runs out if the node dies.
 * Reservations of tokens stay with the node, because the catalog decides the allowance.
 *
 * While Redis is away each node admits its share: the limit divided by the number of living nodes, at least 1. The window of a
 * share starts full, as if its admissions had come evenly, so that the loss of Redis allows no burst. Redis may come back
 * without its memory, so for one more window a request must fit the share, too. Before a node asks Redis for slots again, it
 * makes leases of those that it holds.
 *
 * The scripts are run before Redis is trusted, because a connection says little: Redis may be a replica, full, or one of a
 * cluster, and its user may lack a command. In a cluster all keys have one hash tag, so they lie on one node, which the scripts
 * need. A single Redis has the names without it, which nodes of earlier versions use, so that both count together while nodes are
 * replaced one by one.
 *
 * So a tenant gets at most one request a node beyond its limit, and only if the limit is below the number of nodes. There is one
 * exception: at the moment of the loss, the shares come on top of what Redis had admitted in the last minute, and of the
 * slots that are still held.
 */
import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { explained, isRefusal, mayPass, whyAway } from '../../away-reasons.ts';
import { observed, type CallObserver } from '../../observation/call-observer.ts';
import { ServiceError } from '../../errors.ts';
import { keyName } from './limiter.ts';
import type {
  ConcurrencyPermit,
  KeyRate,
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
  /** The number of living nodes, with this one. */
  readonly nodes: () => number;
  readonly onChange: (isAway: boolean, cause?: Error) => void;
  /** Observes each script, by its name. */
  readonly onCall?: CallObserver;
  /** How long the slots of a node that died stay taken; default: 15 s. */
  readonly leaseMs?: number;
  /** The start of every key; default: `maxsimd`. */
  readonly prefix?: string;
  /** Admissions use the time that the caller gives, not that of Redis. For tests. */
  readonly usesGivenTime?: boolean;
}

/**
 * Redis counts as lost without an answer for this long. A local command takes a tenth of a millisecond, but this process or Redis
 * may pause for some hundred. Noticing a loss late costs little: the requests of that second wait. Assuming one by mistake
 * refuses all requests above the share for a minute.
 */
const answerMsMax = 1_000;
const connectMsMax = 2_000;
/** The time limit of commands that the client itself sends when it connects. */
const silenceMsMax = 10_000;
const everyConnection = {
  commandTimeout: silenceMsMax,
  connectTimeout: connectMsMax,
  // The driver prints a line of its own where it may not ask for INFO. The probe notices a Redis that is loading, too.
  enableReadyCheck: false,
} as const;
const reconnectMsMax = 1_000;
/** A Redis that answers with an error is asked again after this time. */
const refusedMs = 1_000;
/** A start waits for so long for the end of a refusal that may pass. */
const passMsMax = 3_000;
const defaultLeaseMs = 15_000;

interface Commands {
  admit(...args: readonly (string | number)[]): Promise<[number, number, string, number]>;
  acquire(...args: readonly (string | number)[]): Promise<number>;
  renew(...args: readonly (string | number)[]): Promise<number>;
}

/** Errors that only a Redis of a cluster gives. */
const clusterError = /^(CROSSSLOT|MOVED|ASK|TRYAGAIN|CLUSTERDOWN)\b/;

export class RedisLimiter implements Limiter {
  readonly #options: RedisLimiterOptions;
  #redis: (Redis | Cluster) & Commands;
  #prefix: string;
  readonly #leaseMs: number;
  readonly #node = randomUUID();
  /** Counts the shares, and the slots of this node whether or not Redis is there. */
  readonly #local = new MemoryLimiter();
  /** The tenant or key of each slot that this node has given, by the name of its lease. */
  readonly #leases = new Map<string, string>();
  /** The share of each tenant and key since Redis was lost. */
  readonly #shared = new Map<string, number>();
  readonly #renewing: NodeJS.Timeout;
  #isAway = true;
  #connectionError: Error | undefined;
  /** Redis has been lost since it was last there. */
  #wasLost = false;
  /** Shares hold, too, until this time by `performance.now`. */
  #recoveredAt = 0;
  #count = 0;
  #closed = false;
  #nextTry: NodeJS.Timeout | undefined;
  /** The reason that was last reported. */
  #reported: string | undefined;
  /** Why Redis could not be used at first; `undefined` = it can be. */
  readonly #began = Promise.withResolvers<Error | undefined>();
  #hasBegun = false;

  private constructor(options: RedisLimiterOptions) {
    this.#options = options;
    this.#prefix = options.prefix ?? 'maxsimd';
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs;
    this.#redis = this.#use(
      new Redis(options.url, {
        lazyConnect: true,
        enableOfflineQueue: false,
        maxRetriesPerRequest: 0,
        retryStrategy: reconnectMs,
        ...everyConnection,
      }),
    );
    this.#renewing = setInterval(() => void this.#keepLeases(), this.#leaseMs / 3).unref();
  }

  /** Connects. Without Redis it begins with shares. Rejects when Redis is there and refuses this program. */
  static async connect(options: RedisLimiterOptions): Promise<RedisLimiter> {
    const limiter = new RedisLimiter(options);
    limiter.#connect();
    const cause = await limiter.#began.promise;
    if (!isRefusal(cause)) return limiter;
    limiter.close();
    throw explained(new ServiceError('service_unavailable', 'the limiter cannot be used', { cause }));
  }

  #connect(): void {
    this.#redis
      .connect()
      .catch((error: unknown) => this.#refusedBy(this.#connectionError ?? (error as Error)));
  }

  #use(client: Redis | Cluster): (Redis | Cluster) & Commands {
    client.defineCommand('admit', { numberOfKeys: 3, lua: admitScript });
    client.defineCommand('acquire', { numberOfKeys: 2, lua: acquireScript });
    client.defineCommand('renew', { numberOfKeys: 2, lua: renewScript });
    // A failed command says that there is no connection, and these events say why.
    const noteError = (error: Error): void => void (this.#connectionError = error);
    // At these words of the protected mode the driver prints a line of its own, and gives no event.
    const hello = client.hello.bind(client) as (...words: unknown[]) => Promise<unknown>;
    const reworded = (error: Error): never => {
      if (!error.message.startsWith('DENIED')) throw error;
      error.message = error.message.replace('no password is set', 'there is no password');
      noteError(error);
      throw error;
    };
    Object.assign(client, { hello: (...words: unknown[]) => hello(...words).catch(reworded) });
    if (client instanceof Cluster) client.on('node error', noteError);
    else client.on('error', noteError);
    client.on('error', () => undefined);
    client.on('ready', () => void this.#back());
    client.on('close', () => this.#lost(this.#connectionError ?? new Error('the connection was closed')));
    return client as (Redis | Cluster) & Commands;
  }

  /** Goes on with the client for clusters, which finds the node that has the keys. */
  #joinCluster(one: Redis): void {
    const { host, port, username, password, tls } = one.options;
    one.disconnect();
    this.#prefix = `{${this.#prefix}}`;
    this.#redis = this.#use(
      new Cluster([{ host, port }], {
        lazyConnect: true,
        enableOfflineQueue: false,
        enableReadyCheck: false,
        clusterRetryStrategy: reconnectMs,
        // Shares hold at once, as without a cluster.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        // Certificates have names.
        dnsLookup: (name, found) => found(null, name),
        redisOptions: {
          username,
          password,
          tls,
          ...everyConnection,
        },
      }),
    );
    this.#connect();
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  async admitRate(tenantId: string, perMinute: number, nowMs: number, key?: KeyRate): Promise<RateAdmission> {
    if (this.#sharesHold()) {
      const admission = this.#admitShare(tenantId, perMinute, nowMs, key);
      if (this.#isAway || !admission.admitted) return admission;
    }
    try {
      const given = this.#options.usesGivenTime === true ? nowMs : -1;
      const names = [this.#window(tenantId), this.#clock(), this.#window(keyName(key?.keyId ?? ''))];
      const limits = [perMinute, key?.perMinute ?? -1];
      const [admitted, remaining, waitMs, decides] = await this.#observed('admit', () =>
        this.#redis.admit(...names, this.#name(), ...limits, windowMs, given),
      );
      const retryAfterSeconds = Math.max(1, Math.ceil(Number(waitMs) / 1000));
      return {
        admitted: admitted === 1,
        remaining,
        retryAfterSeconds,
        ...(decides === 2 && { isOfKey: true as const }),
      };
    } catch (error) {
      this.#lost(error as Error);
      return this.#admitShare(tenantId, perMinute, nowMs, key);
    }
  }

  /** Asks Redis by a script, so that `isAway` is true when it cannot be used, also while nobody sends requests. */
  async ping(): Promise<void> {
    if (!this.#isAway) await this.#probe().catch((error: unknown) => this.#lost(error as Error));
  }

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
        // A lease that cannot be given back runs out.
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
    clearTimeout(this.#nextTry);
    this.#redis.disconnect();
  }

  #sharesHold(): boolean {
    if (this.#isAway) return true;
    if (performance.now() < this.#recoveredAt) return true;
    this.#shared.clear();
    return false;
  }

  #admitShare(tenantId: string, perMinute: number, nowMs: number, key?: KeyRate): RateAdmission {
    const share = this.#fillShare(tenantId, perMinute, nowMs);
    const keyShare = key && {
      keyId: key.keyId,
      perMinute: this.#fillShare(keyName(key.keyId), key.perMinute, nowMs),
    };
    return this.#local.admitRate(tenantId, share, nowMs, keyShare);
  }

  #fillShare(name: string, perMinute: number, nowMs: number): number {
    const share = this.#shareOf(perMinute);
    // When the share changes the window must, too: it would refuse or admit the difference at once.
    if (this.#shared.get(name) !== share) {
      this.#shared.set(name, share);
      this.#local.fillWindow(name, share, nowMs);
    }
    return share;
  }

  /** The slots of this node count whether or not Redis is there. So the slots that Redis gave count against a share. */
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
    this.#refusedBy(cause);
  }

  /** Redis cannot be used now. */
  #refusedBy(cause: Error): void {
    if (this.#closed) return;
    const redis = this.#redis;
    if (redis instanceof Redis && clusterError.test(cause.message)) return this.#joinCluster(redis);
    this.#wasLost = true;
    // A refusal of the start is reported by its end.
    if (this.#hasBegun || !isRefusal(cause)) this.#report(cause);
    if (!mayPass(cause)) this.#begin(cause);
    else if (!this.#hasBegun) setTimeout(() => this.#begin(cause), passMsMax).unref();
    // A connection that does not answer is not used again. A cluster has other nodes.
    if (redis instanceof Redis && cause.name !== 'ReplyError') {
      if (redis.status === 'ready') redis.disconnect(true);
      return;
    }
    clearTimeout(this.#nextTry);
    this.#nextTry = setTimeout(() => {
      // Otherwise the next connection asks.
      if (this.#redis.status !== 'ready') return;
      // After a failover the address leads elsewhere, and this connection does not. A cluster tells where its keys are.
      if (this.#redis instanceof Redis) this.#redis.disconnect(true);
      else void this.#back();
    }, refusedMs).unref();
  }

  #begin(cause?: Error): void {
    this.#hasBegun = true;
    this.#began.resolve(cause);
  }

  #report(cause: Error): void {
    const reason = whyAway(cause) ?? cause.message;
    if (this.#reported === reason) return;
    this.#reported = reason;
    this.#options.onChange(true, cause);
  }

  async #back(): Promise<void> {
    clearTimeout(this.#nextTry);
    try {
      await this.#probe();
      // Redis may have forgotten its leases, and never knew the slots of a share.
      if (this.#leases.size > 0) await this.#renewAll();
    } catch (error) {
      return this.#refusedBy(error as Error);
    }
    if (!this.#isAway || this.#closed) return;
    this.#recoveredAt = this.#wasLost ? performance.now() + windowMs : 0;
    this.#wasLost = false;
    this.#connectionError = undefined;
    this.#reported = undefined;
    this.#isAway = false;
    this.#options.onChange(false);
    this.#begin();
  }

  /** Runs every command that requests need, all at once, on keys of its own that expire. */
  async #probe(): Promise<void> {
    const redis = this.#redis;
    const given = this.#options.usesGivenTime === true ? 0 : -1;
    const [slots, clock, window] = [this.#slots('probe'), this.#clock(), this.#window('probe')];
    const admit = () => redis.admit(window, clock, window, 'probe', 1, -1, windowMs, given);
    // The driver connects to a member of a cluster at the first command, and refuses others meanwhile.
    if (redis instanceof Cluster) await this.#observed('probe', admit);
    // The driver goes on in another database if it may not select that of the URL.
    const database = redis instanceof Redis ? redis.options.db : undefined;
    await this.#observed('probe', () =>
      Promise.all([
        database ? redis.select(database) : undefined,
        // A new connection sends the first as text and the second by its digest, which are two commands.
        admit(),
        admit(),
        redis.acquire(slots, clock, 'probe', 1, 1, given),
        redis.renew(slots, clock, 'probe', 1, given),
        redis.zrem(slots, 'probe'),
      ]),
    );
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

  #window(name: string): string {
    return `${this.#prefix}:rate:${name}`;
  }

  #slots(tenantId: string): string {
    return `${this.#prefix}:slots:${tenantId}`;
  }

  #clock(): string {
    return `${this.#prefix}:clock`;
  }
}

function reconnectMs(attempt: number): number {
  return Math.min(reconnectMsMax, 50 * attempt);
}

/**
 * Rejects if there is no answer in time. When a stopped process goes on, its timers run before its sockets are read. So the
 * timer gives an answer that lies in the socket one more turn of the event loop.
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
