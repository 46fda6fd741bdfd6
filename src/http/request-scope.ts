/**
 * The life of one request, from its first hook until its response is closed and its work has ended. The concurrency slot is
 * held until then, even if the client leaves early. Otherwise a tenant could start unbounded work by hanging up.
 */
import type { ServerResponse } from 'node:http';
import { assertInvariant } from '../errors.ts';
import type { ErrorCode, ServiceError } from '../errors.ts';
import type { KeyAccess } from '../catalog/contract.ts';
import type { AdmittedRequest, RequestContext } from '../service/contract.ts';
import { serviceStage, StageTimings } from '../service/stage-timings.ts';
import type { TraceParent } from './protocol/trace-parent.ts';

export class RequestScope {
  readonly requestId: string;
  readonly startedAtMs = Date.now();
  readonly traceParent: TraceParent | undefined;
  /**
   * The stages here follow one another: `admission`, `body` (read, parsed, validated), `service`, `answer` (made, counted,
   * written). The service adds the stages within its own.
   */
  readonly timings = new StageTimings();
  errorCode: ErrorCode | undefined;
  /** The tenant whose request was refused before it was admitted. */
  refusedTenantId: string | undefined;
  /** Status of an answer given past the router. */
  protocolStatus: number | undefined;
  #context: RequestContext | undefined;
  #access: KeyAccess | undefined;
  #operator: string | undefined;
  #isAdmitted = false;
  readonly #releases: (() => void)[] = [];
  #work = 0;
  #countLeft: (context: RequestContext) => Promise<void> = () => Promise.resolve();
  #answered = false;
  #closed = false;
  readonly startedAt = performance.now();
  #markedAt = this.startedAt;
  readonly #clientGone = new AbortController();

  constructor(
    { requestId, traceParent }: Pick<RequestScope, 'requestId' | 'traceParent'>,
    response: ServerResponse,
    onClose: (scope: RequestScope) => void,
  ) {
    this.requestId = requestId;
    this.traceParent = traceParent;
    response.once('finish', () => (this.#answered = true));
    response.once('close', () => {
      this.#closed = true;
      this.#markStage('answer');
      if (!this.#answered) this.#clientGone.abort(new ClientGoneError());
      onClose(this);
      this.#releaseWhenOver();
    });
  }

  /** Notes an answer that went straight to the socket because the request's stream broke. */
  answeredBelow(error: ServiceError): void {
    this.errorCode = error.code;
    this.protocolStatus = error.httpStatus;
  }

  get context(): RequestContext | undefined {
    return this.#context;
  }

  get tenantId(): string | undefined {
    return this.#context?.tenant.id ?? this.refusedTenantId;
  }

  /** The scope of the request's key; `undefined` before admission. */
  get access(): KeyAccess | undefined {
    return this.#access;
  }

  get isAdmitted(): boolean {
    return this.#isAdmitted;
  }

  get clientGone(): boolean {
    return this.#clientGone.signal.aborted;
  }

  elapsedMs(): number {
    return performance.now() - this.startedAt;
  }

  /** Takes over the admission's slot. `timeoutMs` counts from the request's arrival. */
  admit(admitted: AdmittedRequest, timeoutMs: number): void {
    this.#admitted();
    this.#access = admitted.access;
    this.#context = {
      requestId: this.requestId,
      tenant: admitted.tenant,
      signal: this.#clientGone.signal,
      deadlineMs: this.startedAtMs + timeoutMs,
      startedAtMs: this.startedAtMs,
      timings: this.timings,
      spent: { inputTokens: 0, documents: 0 },
    };
    this.atEnd(() => admitted.permit.release());
  }

  /** `count` is called after work whose caller left before the answer. */
  onLeft(count: (context: RequestContext) => Promise<void>): void {
    this.#countLeft = count;
  }

  /** Admits a request without a tenant, which counts nowhere. `name` is for the audit log. */
  admitOperator(name: string): void {
    this.#operator = name;
    this.#admitted();
  }

  get operator(): string {
    assertInvariant(this.#operator !== undefined, 'an act of an operator before admission');
    return this.#operator;
  }

  #admitted(): void {
    this.#markStage('admission');
    this.#isAdmitted = true;
  }

  /** Runs `release` once the response is closed and all work has ended. */
  atEnd(release: () => void): void {
    this.#releases.push(release);
    this.#releaseWhenOver();
  }

  /** Runs the request's operation. None starts for a client that has gone. */
  async run<Result>(operation: (context: RequestContext) => Promise<Result>): Promise<Result> {
    const context = this.#context;
    assertInvariant(context !== undefined, 'an operation before admission');
    context.signal.throwIfAborted();
    this.#markStage('body');
    return await this.hold(this.#operate(operation, context));
  }

  /** Work for a caller who left is counted while the slot is held, so that a drain waits for it. */
  async #operate<Result>(
    operation: (context: RequestContext) => Promise<Result>,
    context: RequestContext,
  ): Promise<Result> {
    try {
      return await operation(context);
    } finally {
      this.#markStage(serviceStage);
      if (this.clientGone) await this.#countLeft(context);
    }
  }

  /** Keeps the slot until this piece of work settles. */
  async hold<Result>(work: Promise<Result>): Promise<Result> {
    this.#work += 1;
    try {
      return await work;
    } finally {
      this.#work -= 1;
      this.#releaseWhenOver();
    }
  }

  /** Notes the time since the last mark (or the start) under `stage`. */
  #markStage(stage: string): void {
    const now = performance.now();
    this.timings.note(stage, { startedAt: this.#markedAt, ms: now - this.#markedAt });
    this.#markedAt = now;
  }

  #releaseWhenOver(): void {
    if (!this.#closed || this.#work > 0) return;
    for (const release of this.#releases.splice(0)) release();
  }
}

/** The abort reason if the connection closed before the answer was out. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';

  constructor() {
    super('the client has left');
  }
}
