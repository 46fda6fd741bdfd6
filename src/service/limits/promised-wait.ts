/**
 * Bounds how long the requests of a tenant wait for each other. A request that would wait longer is refused at once, before it
 * costs work. An admitted request is answered. Without this bound all requests of an overloaded tenant would wait until
 * their deadlines, and most would be given up then.
 *
 * The wait is predicted by Little's law (Operations Research 9, 1961). Each answer took some time, and some work of the tenant
 * was there when its request came. The time divided by the work is what a unit of work takes now. Everything that slows
 * the tenant down is in that measure, so nothing needs to be known of other tenants, and no tenant is refused for another.
 */
import { unavailable } from '../../errors.ts';

interface Line {
  requests: number;
  work: number;
  /** How long recent answers took, and the work that was there with their requests. Both are smoothed from 0 on. */
  answeredMs: number;
  answeredWork: number;
}

export interface PromisedWaitOptions {
  /** With fewer requests of the tenant none is refused: one request that was slow by chance says little about a wait. */
  readonly requestsMin: number;
  readonly waitMsMax: number;
  readonly smoothing: number;
}

const defaults: PromisedWaitOptions = { requestsMin: 64, waitMsMax: 1_000, smoothing: 0.1 };

export class PromisedWait {
  /** A tenant without requests has no line: its measures are forgotten when all are answered. */
  readonly #lines = new Map<string, Line>();
  readonly #nowMs: () => number;
  readonly #options: PromisedWaitOptions;

  constructor(nowMs: () => number, options: PromisedWaitOptions = defaults) {
    this.#nowMs = nowMs;
    this.#options = options;
  }

  get size(): number {
    return this.#lines.size;
  }

  /**
   * Answers a request of about this much `work`, in any unit above 0, which counts as `requests`.
   * @throws {ServiceError} `service_unavailable` when it would wait too long. Otherwise it throws what `answer` throws.
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
