/**
 * The life of one request, from its first hook until its response is closed *and* its work has ended: the
 * concurrency slot is held that long, also when the client leaves early, or a tenant could start work
 * without bound by hanging up.
 */
import type { ServerResponse } from 'node:http';
import { assertInvariant } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { Admission, RequestContext } from '../service/contract.ts';

export class RequestScope {
  readonly requestId: string;
  readonly startedAtMs = Date.now();
  /** Milliseconds by stage; the service adds its own. */
  readonly timings: Record<string, number> = {};
  /** Code of the error answered, for logs and metrics. */
  errorCode: ErrorCode | undefined;
  #context: RequestContext | undefined;
  #permit: Admission['permit'] | undefined;
  #work = 0;
  #answered = false;
  #closed = false;
  readonly #startedAt = performance.now();
  #markedAt = this.#startedAt;
  readonly #clientGone = new AbortController();

  constructor(requestId: string, response: ServerResponse, onClose: (scope: RequestScope) => void) {
    this.requestId = requestId;
    response.once('finish', () => (this.#answered = true));
    response.once('close', () => {
      this.#closed = true;
      if (!this.#answered) this.#clientGone.abort(new ClientGoneError());
      onClose(this);
      this.#releaseWhenOver();
    });
  }

  /** Set once the tenant is admitted. */
  get context(): RequestContext | undefined {
    return this.#context;
  }

  get clientGone(): boolean {
    return this.#clientGone.signal.aborted;
  }

  elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** Notes the time since the last mark (or the start) under `stage`. */
  markStage(stage: string): void {
    const now = performance.now();
    this.timings[stage] = now - this.#markedAt;
    this.#markedAt = now;
  }

  /** Takes over the admission's slot. `timeoutMs` counts from the request's arrival. */
  admit(admission: Admission, timeoutMs: number): void {
    this.#permit = admission.permit;
    this.#context = {
      requestId: this.requestId,
      tenant: admission.tenant,
      signal: this.#clientGone.signal,
      deadlineMs: this.startedAtMs + timeoutMs,
      startedAtMs: this.startedAtMs,
      timings: this.timings,
    };
    this.#releaseWhenOver();
  }

  /** Runs a piece of the request's work; the slot is held until it settles. None starts for a client that has gone. */
  async run<Result>(work: (context: RequestContext) => Promise<Result>): Promise<Result> {
    const context = this.#context;
    assertInvariant(context !== undefined, 'work before admission');
    context.signal.throwIfAborted();
    this.#work += 1;
    try {
      return await work(context);
    } finally {
      this.#work -= 1;
      this.#releaseWhenOver();
    }
  }

  #releaseWhenOver(): void {
    if (this.#closed && this.#work === 0) this.#permit?.release();
  }
}

/** Reason of the abort signal when the connection closed before the answer was out. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';

  constructor() {
    super('the client has gone');
  }
}
