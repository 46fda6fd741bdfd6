/**
 * The service in another thread than the engine and the catalog. `remoteService` has the interface, and `hostService` calls the
 * real one. A request is known by a number from its admission until its permit is released. The host keeps one context for
 * it, because a request is charged once by its context. Stage times and spent tokens come back with each answer.
 */
import { assertInvariant, fromFailure, toFailure, type Failure } from '../../errors.ts';
import { fromSystem } from '../../system-errors.ts';
import type { Tenant } from '../../catalog/contract.ts';
import type { AdmittedRequest, RequestContext, Service } from '../contract.ts';
import { once } from '../once.ts';
import { StageTimings, type Stage } from '../stage-timings.ts';
import type { Handlers, Link } from './link.ts';

/** Plain methods take no context. */
const kinds = {
  admit: 'admission',
  admitSession: 'admission',
  openSession: 'plain',
  endSession: 'plain',
  createIndex: 'operation',
  indexIdOf: 'operation',
  listIndexes: 'operation',
  listIndexPage: 'operation',
  getIndex: 'operation',
  updateIndex: 'operation',
  swapIndexNames: 'operation',
  describeIndex: 'operation',
  contents: 'operation',
  deleteIndex: 'operation',
  upsertDocuments: 'operation',
  deleteDocument: 'operation',
  deleteMatching: 'operation',
  listDocuments: 'operation',
  getDocument: 'operation',
  countDocuments: 'operation',
  countValues: 'operation',
  updateDocument: 'operation',
  search: 'operation',
  query: 'operation',
  score: 'operation',
  locateTokens: 'operation',
  modelNames: 'operation',
  usage: 'operation',
  usageDays: 'operation',
  countRequest: 'operation',
  countLeft: 'operation',
  readiness: 'plain',
} as const satisfies Record<keyof Service, 'admission' | 'operation' | 'plain'>;

type Kind = (typeof kinds)[keyof typeof kinds];
type Method = (...input: readonly unknown[]) => Promise<unknown>;

/** The part of a context that the host does not know from the admission. */
type RequestFacts = Pick<RequestContext, 'requestId' | 'deadlineMs' | 'startedAtMs'>;

interface Outcome {
  readonly value?: unknown;
  readonly failure?: Failure;
  /** Milliseconds since the epoch at which `startedAt` of the stages is 0. Each thread has its own. */
  readonly originMs: number;
  readonly stages: readonly (readonly [name: string, stage: Stage])[];
  readonly spent: RequestContext['spent'];
}

export function remoteService(link: Link): Service {
  const numbers = new WeakMap<Tenant, number>();
  let last = 0;
  const makers: Readonly<Record<Kind, (name: string) => Method>> = {
    plain:
      (name) =>
      (...input) =>
        link.call(name, ...input),
    admission: (name) => async (credential) => {
      const number = ++last;
      const admitted = (await link.call(name, number, credential)) as Omit<AdmittedRequest, 'permit'>;
      // The host makes a tenant for each admission, so this one is of this request alone.
      numbers.set(admitted.tenant, number);
      return { ...admitted, permit: { release: once(() => link.tell('release', number)) } };
    },
    operation:
      (name) =>
      async (given, ...input) => {
        const context = given as RequestContext;
        const number = numbers.get(context.tenant);
        assertInvariant(number !== undefined, 'an operation of a request that was not admitted');
        // An operation that charged the request has counted it.
        if (name === 'countRequest' && context.spent.isCharged === true) return undefined;
        return operate(link, { name, number, context, input });
      },
  };
  const methods = Object.entries(kinds).map(([name, kind]) => [name, makers[kind](name)]);
  return Object.fromEntries(methods) as Service;
}

async function operate(
  link: Link,
  {
    name,
    number,
    context,
    input,
  }: { name: string; number: number; context: RequestContext; input: unknown[] },
): Promise<unknown> {
  const { requestId, deadlineMs, startedAtMs, signal, timings, spent } = context;
  const facts: RequestFacts = { requestId, deadlineMs, startedAtMs };
  const cancel = (): void => link.tell('cancel', number);
  // A client may have left between two operations.
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  try {
    const outcome = (await link.call(name, number, facts, ...input)) as Outcome;
    const { value, failure, originMs, stages } = outcome;
    for (const [stage, { startedAt, ...rest }] of stages)
      timings.set(stage, { ...rest, startedAt: startedAt + originMs - performance.timeOrigin });
    Object.assign(spent, outcome.spent);
    if (failure !== undefined) throw fromFailure(failure);
    return value;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

interface HeldRequest {
  readonly admitted: AdmittedRequest;
  readonly abort: AbortController;
  readonly running: Set<Promise<unknown>>;
  context?: RequestContext;
}

/**
 * `settled` resolves once the releases of all answers that left any thread before are here: a client that has its answer may
 * ask another thread sooner. `close`: the other thread has ended. Its requests are cancelled, and release their permits once
 * their work has ended.
 */
export function hostService(
  service: Service,
  settled: () => Promise<unknown>,
): { readonly handlers: Handlers; close(): void } {
  const requests = new Map<number, HeldRequest>();
  let closed = false;
  const methods = service as unknown as Readonly<Record<string, Method>>;
  const release = (number: number): void => {
    requests.get(number)?.admitted.permit.release();
    requests.delete(number);
  };
  const endEarly = async (number: number, { abort, running }: HeldRequest): Promise<void> => {
    abort.abort();
    await Promise.allSettled(running);
    release(number);
  };
  const makers: Readonly<Record<Kind, (name: string) => Handlers[string]>> = {
    plain:
      (name) =>
      (...input) =>
        methods[name]!(...input),
    admission: (name) => async (number: number, credential: unknown) => {
      const admitted = (await methods[name]!(credential, settled)) as AdmittedRequest;
      requests.set(number, { admitted, abort: new AbortController(), running: new Set() });
      if (closed) release(number);
      const { tenant, access, rate } = admitted;
      // A copy: objects that one message names twice arrive as one, and the other thread knows the request by its tenant.
      return { tenant: { ...tenant }, access, rate };
    },
    operation:
      (name) =>
      async (number: number, facts: RequestFacts, ...input): Promise<Outcome> => {
        const request = requests.get(number);
        assertInvariant(request !== undefined, 'an operation of a request that was released');
        const context = (request.context ??= contextOf(request, facts));
        const work = methods[name]!(context, ...input);
        request.running.add(work);
        const result = await outcomeOf(work);
        request.running.delete(work);
        const { timings, spent } = context;
        return { ...result, originMs: performance.timeOrigin, stages: [...timings.entries()], spent };
      },
  };
  const methodHandlers = Object.entries(kinds).map(([name, kind]) => [name, makers[kind](name)] as const);
  return {
    handlers: {
      ...Object.fromEntries(methodHandlers),
      release,
      cancel: (number: number) => requests.get(number)?.abort.abort(),
    },
    close() {
      closed = true;
      for (const [number, request] of requests) void endEarly(number, request);
    },
  };
}

function contextOf({ admitted, abort }: HeldRequest, facts: RequestFacts): RequestContext {
  return {
    ...facts,
    tenant: admitted.tenant,
    signal: abort.signal,
    timings: new StageTimings(),
    spent: { inputTokens: 0, documents: 0 },
  };
}

async function outcomeOf(work: Promise<unknown>): Promise<Pick<Outcome, 'value' | 'failure'>> {
  try {
    return { value: await work };
  } catch (error) {
    return { failure: toFailure(fromSystem(error)) };
  }
}
