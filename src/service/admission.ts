/**
 * Decides who may start a request: it checks key and tenant (401, 403), then rate, then concurrency (429). A revoked key, a
 * session that was ended on another node and a suspended tenant are refused within the age of the cache.
 */
import { timingSafeEqual } from 'node:crypto';
import { apiKeyMatches, parseApiKey } from '../catalog/api-key.ts';
import {
  keyUseIntervalMs,
  type ApiKey,
  type Catalog,
  type KeyRecord,
  type Tenant,
} from '../catalog/contract.ts';
import { ServiceError, unavailable, type RateState } from '../errors.ts';
import type { AdmittedRequest, Service } from './contract.ts';
import { HotCache } from './hot-cache.ts';
import type { InFlight } from './in-flight.ts';
import { keyName, type ConcurrencyPermit, type Limiter, type RateAdmission } from './limits/limiter.ts';
import { Sessions } from './session.ts';
import type { UsageRecorder } from './usage/usage-recorder.ts';

export interface AdmissionDeps {
  readonly catalog: Catalog;
  /** API keys are hashed with it; 32 bytes. */
  readonly keyPepper: Uint8Array;
  readonly limiter: Limiter;
  readonly usage: UsageRecorder;
  readonly inFlight: InFlight;
  readonly nowMs: () => number;
  /** The clock of rate windows. */
  readonly rateNowMs: () => number;
  /** Called when the ledger does not have an answer that was sent. */
  readonly onUncounted: (error: unknown) => void;
  /** Called when the last use of a key could not be written. It is tried again with a later request. */
  readonly onUnnoted: (error: unknown) => void;
}

type WhenFull = Parameters<Service['admit']>[1];

const keysMax = 10_000;
const keyAgeMsMax = 2_000;
const concurrencyRetrySeconds = 1;

export class Admission {
  readonly #deps: AdmissionDeps;
  readonly #records = new HotCache<KeyRecord>({ rowsMax: keysMax, ageMsMax: keyAgeMsMax });
  /** By the digest of a session: whether it was signed out. */
  readonly #endings = new HotCache<{ readonly hasEnded: boolean }>({
    rowsMax: keysMax,
    ageMsMax: keyAgeMsMax,
  });
  /** The key that was found to match a cached record, so that not every request pays for a hash. */
  readonly #matched = new WeakMap<KeyRecord, Buffer>();
  /** When the use of a key was noted last with a cached record, which is older than that. */
  readonly #noted = new WeakMap<KeyRecord, number>();
  readonly #sessions: Sessions;
  #draining = false;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
    this.#sessions = new Sessions(deps.keyPepper);
  }

  drain(): void {
    this.#draining = true;
  }

  /** Forgets the cached keys, tenants and limits. */
  forgetAll(): void {
    this.#records.forgetAll();
  }

  get draining(): boolean {
    return this.#draining;
  }

  async admit(authorization: string | undefined, whenFull?: WhenFull): Promise<AdmittedRequest> {
    if (this.#draining) throw shuttingDown();
    return await this.#admitTenant(await this.#authenticate(authorization), whenFull);
  }

  /** Does the same for a session that `openSession` gave. */
  async admitSession(session: string | undefined, whenFull?: WhenFull): Promise<AdmittedRequest> {
    if (this.#draining) throw shuttingDown();
    const record = session === undefined ? undefined : await this.#keyOfSession(session);
    if (record === undefined) throw unauthenticated('the session has ended; sign in again');
    if (isRevoked(record))
      throw unauthenticated('the API key of this session was revoked; sign in with another key');
    return await this.#admitTenant(record, whenFull);
  }

  /** Opens a session, which stands for the key for `sessionMs`. */
  async openSession(authorization: string | undefined): Promise<string> {
    return this.#sessions.open(await this.#authenticate(authorization), this.#deps.nowMs());
  }

  /** Ends a session: here at once, on other nodes within the age of the cache. Does nothing if it has ended. */
  async endSession(session: string | undefined): Promise<void> {
    const record = session === undefined ? undefined : await this.#keyOfSession(session);
    if (session === undefined || record === undefined) return;
    const ended = this.#sessions.ended(session, record);
    await this.#deps.catalog.endSession(ended);
    this.#endings.forget(nameOf(ended.digest));
  }

  /** The key of a session, which may be revoked; `undefined` if the session has ended otherwise. */
  async #keyOfSession(session: string): Promise<KeyRecord | undefined> {
    const keyId = this.#sessions.keyIdOf(session, this.#deps.nowMs());
    const record = keyId === undefined ? undefined : await this.#record(keyId);
    if (record === undefined || !this.#sessions.matches(session, record)) return undefined;
    const digest = this.#sessions.digestOf(session);
    const ending = await this.#endings.get(nameOf(digest), async () => ({
      hasEnded: await this.#deps.catalog.hasSessionEnded(digest),
    }));
    return ending?.hasEnded === false ? record : undefined;
  }

  async #admitTenant(record: KeyRecord, whenFull?: WhenFull): Promise<AdmittedRequest> {
    const { tenant, key } = record;
    this.#noteUse(record);
    if (tenant.suspended) throw await this.#refuseSuspended(tenant);
    const rate = await this.#admitRate(tenant, key);
    const permit = await this.#acquireSlots({ tenant, key }, rate, whenFull);
    return { tenant, access: key.access, rate, permit };
  }

  /** Writes the last use of a key where the one that is known is too old. No request waits for it. */
  #noteUse(record: KeyRecord): void {
    const { catalog, nowMs, onUnnoted } = this.#deps;
    const now = Math.floor(nowMs());
    const last = this.#noted.get(record) ?? record.key.lastUsedAtMs;
    if (last !== undefined && now - last < keyUseIntervalMs) return;
    this.#noted.set(record, now);
    catalog.noteKeyUse(record.key.id, now).catch(onUnnoted);
  }

  async #authenticate(authorization: string | undefined): Promise<KeyRecord> {
    const apiKey = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
    if (apiKey === undefined) {
      throw unauthenticated('the API key is missing; send "Authorization: Bearer <API key>"');
    }
    const keyId = parseApiKey(apiKey)?.id;
    if (keyId === undefined) throw unauthenticated();
    const record = await this.#record(keyId);
    if (record === undefined || isRevoked(record) || !this.#matches(apiKey, record)) throw unauthenticated();
    return record;
  }

  #record(keyId: string): Promise<KeyRecord | undefined> {
    return this.#records.get(keyId, () => this.#deps.catalog.findKey(keyId));
  }

  /** Takes the same time for every wrong key. */
  #matches(apiKey: string, record: KeyRecord): boolean {
    const given = Buffer.from(apiKey);
    const matched = this.#matched.get(record);
    if (matched !== undefined && matched.length === given.length && timingSafeEqual(matched, given)) {
      return true;
    }
    if (!apiKeyMatches(apiKey, this.#deps.keyPepper, record.hash)) return false;
    this.#matched.set(record, given);
    return true;
  }

  /**
   * Refuses a suspended tenant with 403. The refusal is counted here, because the caller counts admitted requests alone. Above
   * its rate the tenant's refusals are not counted, so that they cost no write.
   */
  async #refuseSuspended(tenant: Tenant): Promise<ServiceError> {
    const { usage, onUncounted } = this.#deps;
    if ((await this.#takeRate(tenant)).admitted) await usage.countAnswer(tenant.id).catch(onUncounted);
    return new ServiceError('tenant_suspended', 'the tenant is suspended', { tenantId: tenant.id });
  }

  #takeRate(tenant: Tenant, key?: ApiKey): RateAdmission | Promise<RateAdmission> {
    const { limiter, rateNowMs } = this.#deps;
    const perMinute = key?.requestsPerMinute;
    const keyRate = key === undefined || perMinute === undefined ? undefined : { keyId: key.id, perMinute };
    return limiter.admitRate(tenant.id, tenant.limits.requestsPerMinute, rateNowMs(), keyRate);
  }

  async #admitRate(tenant: Tenant, key: ApiKey): Promise<RateState> {
    const rate = await this.#takeRate(tenant, key);
    const tenantLimit = tenant.limits.requestsPerMinute;
    const [owner, limit] =
      rate.isOfKey === true ? ['API key', key.requestsPerMinute ?? tenantLimit] : ['tenant', tenantLimit];
    if (!rate.admitted) {
      throw new ServiceError(
        'rate_limit_exceeded',
        `the ${owner} has used its ${limit} requests of this minute`,
        {
          tenantId: tenant.id,
          retryAfterSeconds: rate.retryAfterSeconds,
          rate: { limit, remaining: 0, resetSeconds: rate.retryAfterSeconds },
        },
      );
    }
    return { limit, remaining: rate.remaining, resetSeconds: rate.retryAfterSeconds };
  }

  /** The slot of the key comes first: a request that its key refuses takes no slot of the tenant. */
  async #acquireSlots(
    { tenant, key }: Pick<KeyRecord, 'tenant' | 'key'>,
    rate: RateState,
    whenFull?: WhenFull,
  ): Promise<ConcurrencyPermit> {
    const { limiter, inFlight } = this.#deps;
    const acquire = async (name: string, most: number): Promise<ConcurrencyPermit | undefined> => {
      const slot = await limiter.acquireSlot(name, most);
      if (slot !== undefined || whenFull === undefined) return slot;
      await whenFull();
      return limiter.acquireSlot(name, most);
    };
    const keyMost = key.maxConcurrentRequests;
    const keySlot = keyMost === undefined ? undefined : await acquire(keyName(key.id), keyMost);
    if (keyMost !== undefined && keySlot === undefined) throw slotsTaken('API key', keyMost, tenant, rate);
    const most = tenant.limits.maxConcurrentRequests;
    const slot = await acquire(tenant.id, most);
    if (slot === undefined) {
      keySlot?.release();
      throw slotsTaken('tenant', most, tenant, rate);
    }
    const leave = inFlight.enter();
    return {
      release() {
        slot.release();
        keySlot?.release();
        leave();
      },
    };
  }
}

function slotsTaken(owner: string, most: number, tenant: Tenant, rate: RateState): ServiceError {
  return new ServiceError(
    'concurrency_limit_exceeded',
    `the ${owner} has ${most} requests in flight, which is its limit`,
    { tenantId: tenant.id, retryAfterSeconds: concurrencyRetrySeconds, rate },
  );
}

function nameOf(digest: Buffer | Uint8Array): string {
  return Buffer.from(digest).toString('hex');
}

function isRevoked({ key }: KeyRecord): boolean {
  return key.revokedAtMs !== undefined;
}

function unauthenticated(message = 'the API key is invalid or revoked'): ServiceError {
  return new ServiceError('authentication_failed', message);
}

function shuttingDown(): ServiceError {
  return unavailable('the service is shutting down');
}
