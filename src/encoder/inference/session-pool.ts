/**
 * Worker threads with ONNX Runtime sessions, as the gRPC thread uses them. A worker runs one batch and may hold one more of each
 * kind, so that it never waits for this thread between two runs.
 */
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { assertInvariant } from '../../errors.ts';
import type { Provider } from '../protocol/contract.ts';
import { hasCudaLibrary } from './cuda/cuda-library.ts';
import { freeCores } from './free-cores.ts';
import type {
  BatchKind,
  BatchMessage,
  BatchOutput,
  BatchPlace,
  SessionWorkerData,
  WorkerReply,
} from './session-protocol.ts';

export interface BatchResult {
  readonly output: BatchOutput;
  readonly runMs: number;
  readonly rowsMs: number;
  /** `performance.now()` at the start of the run. */
  readonly startedAt: number;
}

export interface SessionPoolOptions extends Pick<SessionWorkerData, 'models' | 'provider' | 'deviceId'> {
  /** Threads of inference, shared by the workers. */
  readonly threads: number;
  /** 0 = the best number for the provider. */
  readonly workers: number;
  /** Milliseconds after which a running batch counts as stuck. */
  readonly stuckMs: number;
  /** Cores that are free at this moment. */
  readonly freeCores?: () => number;
  /** Called when a batch is stuck or a worker has died. Only the end of the process helps then. */
  readonly onFatal: (reason: string) => void;
}

interface Flight {
  readonly kind: BatchKind;
  readonly paddedTokens: number;
  readonly settled: PromiseWithResolvers<BatchResult>;
}

/** On a CPU one worker runs short queries alone, and one runs small batches of documents alone. */
type Role = 'usual' | 'queries' | 'small';

interface Slot {
  readonly worker: Worker;
  readonly role: Role;
  readonly flights: Map<number, Flight>;
  /** When the running batch was posted, or the one before it ended. Meaningless without flights. */
  runningSince: number;
}

interface Ready {
  readonly provider: 'cpu' | 'cuda';
  readonly fallback: string | undefined;
}

/**
 * Each worker has a copy of the weights. One thread per worker gives twice the tokens per CPU second of two threads in one worker,
 * which wait for each other in every layer. So each core gets a worker, up to this number.
 */
const cpuWorkersMax = 16;

/**
 * The most threads for a lone query. It runs on several only while so many cores are free: two threads take .74 of the time of one
 * on two free cores (12 tokens, bge-small). They take twice the time if another process holds one of the cores, because each
 * layer waits for the slower thread.
 */
const loneThreadsMax = 4;

/** Batches of one kind that a worker holds: the running one and the next one. */
const heldPerKind = 2;
/**
 * On a CPU no batch is prepared behind one of the same kind with more padded tokens than these, which runs for some 30 ms, and no
 * documents are prepared behind such a query. A prepared batch keeps its place, even if a text of another tenant comes meanwhile,
 * or another worker becomes free. After a longer run the way to this thread and back costs little.
 */
const aheadOfTokensMax = 256;
/**
 * Padded tokens of the batches that the workers for short queries and for small batches of documents run. Nothing interrupts a
 * run, but these threads take the core of another one, because their niceness is lower.
 */
const shortTokensMax = 128;
/**
 * Niceness of threads that run a model on the CPU. Event loops on the same cores go first, because they need little time and all
 * requests wait for them. Then come queries, then small batches of documents. A thread of other documents still gets a fifth of a
 * core that it shares with a busy program of niceness 0. The process itself keeps its niceness, so its event loop does not wait
 * for these threads.
 */
const niceness: Readonly<Record<Role, number>> = { queries: 1, small: 3, usual: 6 };

export class SessionPool {
  readonly provider: 'cpu' | 'cuda';
  /** Why `auto` did not take CUDA. */
  readonly fallback: string | undefined;
  readonly #slots: readonly Slot[];
  readonly #options: SessionPoolOptions;
  readonly #watchdog: NodeJS.Timeout;
  #nextBatchId = 1;
  #closing: Promise<void> | undefined;
  #closed = false;

  /** Starts the workers and loads every model. Rejects when the provider cannot load. */
  static async open(options: SessionPoolOptions): Promise<SessionPool> {
    const slots: Slot[] = [];
    const openMore = async (count: number, provider: Provider): Promise<Ready[]> => {
      const opened = Array.from({ length: count }, (_, i) =>
        openWorker(options, provider, roleOf(slots.length + i, options)),
      );
      slots.push(...opened);
      return Promise.all(opened.map(async (slot) => untilReady(slot)));
    };
    try {
      // Where CUDA may load, the first worker tries it. The number of workers depends on the result.
      const asked = options.provider === 'auto' && !hasCudaLibrary() ? 'cpu' : options.provider;
      const [first] = await openMore(asked === 'cpu' ? slotsOn('cpu', options) : 1, asked);
      const { provider } = first!;
      await openMore(slotsOn(provider, options) - slots.length, provider);
      const fallback = asked === options.provider ? first!.fallback : 'cuda: its provider is not installed';
      return new SessionPool(options, slots, { provider, fallback });
    } catch (error) {
      await Promise.all(slots.map(async (slot) => slot.worker.terminate()));
      throw error;
    }
  }

  private constructor(options: SessionPoolOptions, slots: readonly Slot[], ready: Ready) {
    this.#options = options;
    this.#slots = slots;
    this.provider = ready.provider;
    this.fallback = ready.fallback;
    for (const slot of slots) {
      slot.worker.on('message', (message: WorkerReply) => this.#receive(slot, message));
      slot.worker.on('error', (error) => this.#die(`a session worker failed: ${error.message}`));
      slot.worker.on('exit', (code) => this.#die(`a session worker exited with ${code}`));
    }
    this.#watchdog = setInterval(() => this.#watch(), Math.min(1000, options.stuckMs / 2)).unref();
  }

  /**
   * Padded tokens of the largest batch that a worker takes there now; 0 = no worker takes one. `isContended`: documents of several
   * tenants want to run, so on a CPU no batch of documents is prepared ahead.
   */
  roomFor(place: BatchPlace, isContended = false): number {
    if (this.#closing !== undefined) return 0;
    return this.#slots.reduce((room, slot) => Math.max(room, this.#roomOf(slot, place, isContended)), 0);
  }

  #roomOf(slot: Slot, place: BatchPlace, isContended: boolean): number {
    const kind = place === 'query' ? 'query' : 'document';
    const ahead = [...slot.flights.values()].filter((flight) => flight.kind === kind);
    if (this.provider === 'cuda') {
      // The rows of one more batch of documents may be in the making.
      const held = place === 'document' ? heldPerKind + 1 : heldPerKind;
      return place !== 'small' && ahead.length < held ? Infinity : 0;
    }
    const placeOfRole: Readonly<Record<Role, BatchPlace>> = { usual: kind, queries: 'query', small: 'small' };
    if (placeOfRole[slot.role] !== place) return 0;
    const heldMax = place === 'small' || (place === 'document' && isContended) ? 1 : heldPerKind;
    if (ahead.length >= heldMax) return 0;
    const before = kind === 'document' ? [...slot.flights.values()] : ahead;
    if (before.some(({ paddedTokens }) => paddedTokens > aheadOfTokensMax)) return 0;
    return slot.role === 'usual' ? Infinity : shortTokensMax;
  }

  /** Workers that run documents. */
  get workers(): number {
    return workersOn(this.provider, this.#options);
  }

  /** Runs a batch on the worker with the fewest padded tokens ahead of it. A lone query goes to the first worker: all are idle. */
  async run(
    batch: Omit<BatchMessage, 'type' | 'batchId'>,
    place: BatchPlace = batch.kind,
  ): Promise<BatchResult> {
    const paddedTokens = batch.paddedLength * batch.lengths.length;
    const slot = this.#slots
      .filter((each) => paddedTokens <= this.#roomOf(each, place, false))
      .reduce<Slot | undefined>(
        (best, each) => (best === undefined || load(each) < load(best) ? each : best),
        undefined,
      );
    assertInvariant(slot !== undefined && !this.#closed, 'a batch came to a pool without room');
    const batchId = this.#nextBatchId++;
    const settled = Promise.withResolvers<BatchResult>();
    slot.flights.set(batchId, { kind: batch.kind, paddedTokens, settled });
    const lone =
      batch.lone === true && (this.#options.freeCores ?? freeCores)() >= loneThreadsOf(this.#options);
    const message: BatchMessage = { ...batch, lone, type: 'batch', batchId };
    if (slot.flights.size === 1) slot.runningSince = performance.now();
    const arrays = [message.ids, message.lengths, message.attended, message.kept];
    slot.worker.postMessage(
      message,
      arrays.filter((array) => array !== undefined).map((array) => array.buffer as ArrayBuffer),
    );
    return settled.promise;
  }

  /** Waits for the running batches, because a worker that is ended during a run ends the process. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await Promise.allSettled(
      this.#slots.flatMap(({ flights }) => [...flights.values()].map(({ settled }) => settled.promise)),
    );
    this.#closed = true;
    clearInterval(this.#watchdog);
    await Promise.all(this.#slots.map(async (slot) => slot.worker.terminate()));
  }

  #receive(slot: Slot, message: WorkerReply): void {
    if (message.type === 'ready' || message.type === 'failed') return;
    const flight = slot.flights.get(message.batchId);
    assertInvariant(flight !== undefined, 'a worker answered a batch that it was not given');
    slot.flights.delete(message.batchId);
    slot.runningSince = performance.now();
    if (message.type === 'error') {
      flight.settled.reject(new Error(`inference failed: ${message.message}`));
    } else {
      const startedAt = performance.now() - message.elapsedMs;
      flight.settled.resolve({
        output: message.output,
        runMs: message.runMs,
        rowsMs: message.rowsMs,
        startedAt,
      });
    }
  }

  #watch(): void {
    const now = performance.now();
    for (const { flights, runningSince } of this.#slots) {
      if (flights.size > 0 && now - runningSince > this.#options.stuckMs) {
        this.#die(`a batch has been running for ${Math.round(now - runningSince)} ms`);
      }
    }
  }

  #die(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watchdog);
    for (const { flights } of this.#slots) {
      for (const flight of flights.values()) flight.settled.reject(new Error(reason));
      flights.clear();
    }
    this.#options.onFatal(reason);
  }
}

/** Workers to run: the configured number, or the best one for the provider. */
function workersOn(provider: 'cpu' | 'cuda', { workers, threads }: SessionPoolOptions): number {
  if (workers > 0) return Math.min(workers, threads);
  return provider === 'cuda' ? 1 : Math.min(threads, cpuWorkersMax);
}

/** The workers, and on a CPU the one for queries and the one for small batches. */
function slotsOn(provider: 'cpu' | 'cuda', options: SessionPoolOptions): number {
  return workersOn(provider, options) + (provider === 'cpu' ? 2 : 0);
}

/** The first worker is the one for queries, and the last one is for small batches. */
function roleOf(place: number, options: SessionPoolOptions): Role {
  if (place === 0) return 'queries';
  return place === slotsOn('cpu', options) - 1 ? 'small' : 'usual';
}

function loneThreadsOf({ threads }: SessionPoolOptions): number {
  return Math.min(threads, loneThreadsMax);
}

function openWorker(options: SessionPoolOptions, provider: Provider, role: Role): Slot {
  const entry = new URL(`./session-worker${path.extname(import.meta.filename)}`, import.meta.url);
  const { models, deviceId, threads } = options;
  const intraOpThreads = Math.max(1, Math.floor(threads / workersOn('cpu', options)));
  const loneThreads = Math.max(intraOpThreads, role === 'queries' ? loneThreadsOf(options) : 1);
  const data: SessionWorkerData = {
    models,
    provider,
    deviceId,
    intraOpThreads,
    loneThreads,
    niceness: niceness[role],
  };
  return { worker: new Worker(entry, { workerData: data }), role, flights: new Map(), runningSince: 0 };
}

async function untilReady(slot: Slot): Promise<Ready> {
  return new Promise((resolve, reject) => {
    slot.worker.once('error', reject);
    slot.worker.once('message', (message: WorkerReply) => {
      if (message.type === 'ready') resolve(message);
      else
        reject(new Error(message.type === 'failed' ? message.message : 'a worker spoke before it was ready'));
    });
  });
}

function load(slot: Slot): number {
  let tokens = 0;
  for (const flight of slot.flights.values()) tokens += flight.paddedTokens;
  return tokens;
}
