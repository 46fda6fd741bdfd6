/**
 * Bounds how long a tenant's requests wait for each other. A request that would have to wait longer is refused at once,
 * before work is spent on it; what is admitted is answered. Without it, beyond what the service can answer, all would wait
 * until their deadlines and most would be given up then.
 *
 * The wait is foretold by Little's law (Operations Research 9, 1961): the time that answers took, over the work that
 * was there when their requests came, is what a unit of work takes now. The tenant's share of the encoders and whatever
 * else slows it down are in that measure, so nothing needs to be known of other tenants, and none is refused for them.
 */
import { unavailable } from '../../errors.ts';

interface Line {
  requests: number;
  work: number;
  /** What recent answers took, and the work that was there with their requests; both smoothed from 0 on. */
  answeredMs: number;
  answeredWork: number;
}

export interface PromisedWaitOptions {
  /** Never refused where fewer of the tenant are there: a request that was slow by chance says little of a wait. */
  readonly requestsMin: number;
  readonly waitMsMax: number;
  /** Weight of a new measure. */
  readonly smoothing: number;
}

const defaults: PromisedWaitOptions = { requestsMin: 64, waitMsMax: 1_000, smoothing: 0.1 };

export class PromisedWait {
  /** Tenants without requests have none: when all are answered, what was slow is forgotten. */
  readonly #lines = new Map<string, Line>();
  readonly #nowMs: () => number;
  readonly #options: PromisedWaitOptions;

  constructor(nowMs: () => number, options: PromisedWaitOptions = defaults) {
    this.#nowMs = nowMs;
    this.#options = options;
  }

  /** Tenants with requests now. */
  get size(): number {
    return this.#lines.size;
  }

  /**
   * Answers a request of about so much `work`, in any unit above 0, that counts as so many.
   * @throws {ServiceError} `service_unavailable` when it would wait too long; and what `answer` throws.
   */
  async keep<T>(
    tenantId: string,
    { requests, work }: { readonly requests: number; readonly work: number },
    answer: () => Promise<T>,
  ): Promise<T> {
    const line = this.#lines.get(tenantId) ?? { requests: 0, work: 0, answeredMs: 0, answeredWork: 0 };
    const { requestsMin, waitMsMax, smoothing } = this.#options;
    const workThere = line.work + work;
    const tooLate = workThere * line.answeredMs > waitMsMax * line.answeredWork;
    if (line.requests + requests > requestsMin && tooLate) {
      throw unavailable('more requests of the tenant wait than can be answered soon');
    }
    this.#lines.set(tenantId, line);
    line.requests += requests;
    line.work = workThere;
    const startedAtMs = this.#nowMs();
    try {
      const answered = await answer();
      line.answeredMs += smoothing * (this.#nowMs() - startedAtMs - line.answeredMs);
      line.answeredWork += smoothing * (workThere - line.answeredWork);
      return answered;
    } finally {
      line.requests -= requests;
      line.work -= work;
      if (line.requests === 0) this.#lines.delete(tenantId);
    }
  }
}
