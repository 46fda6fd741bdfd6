/**
 * Worker threads with ONNX Runtime sessions, seen from the gRPC thread. Each worker runs one batch and may hold one
 * more of each kind, so that it never waits for this thread between two runs.
 */
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { assertInvariant } from '../errors.ts';
import type {
  BatchKind,
  BatchMessage,
  BatchOutput,
  SessionWorkerData,
  WorkerReply,
} from './session-protocol.ts';

export interface BatchResult {
  readonly output: BatchOutput;
  readonly runMs: number;
  /** `performance.now()` at the start of the run. */
  readonly startedAt: number;
}

export interface SessionPoolOptions extends Pick<SessionWorkerData, 'models' | 'provider' | 'deviceId'> {
  /** Threads of inference, shared by the workers. */
  readonly threads: number;
  /** 0 = one. */
  readonly workers: number;
  /** Milliseconds after which a running batch counts as stuck. */
  readonly stuckMs: number;
  /** A batch is stuck or a worker has died: nothing but the end of the process helps. */
  readonly onFatal: (reason: string) => void;
}

interface Flight {
  readonly kind: BatchKind;
  readonly paddedTokens: number;
  startedAt: number | undefined;
  readonly resolve: (result: BatchResult) => void;
  readonly reject: (error: Error) => void;
}

interface Slot {
  readonly worker: Worker;
  readonly flights: Map<number, Flight>;
}

/** Batches of one kind that a worker holds: the running one and the one prepared ahead. */
const heldPerKind = 2;

export class SessionPool {
  readonly provider: 'cpu' | 'cuda';
  /** Why `auto` did not take CUDA. */
  readonly fallback: string | undefined;
  readonly #slots: readonly Slot[];
  readonly #options: SessionPoolOptions;
  readonly #watchdog: NodeJS.Timeout;
  #nextBatchId = 1;
  #closed = false;

  /** Starts the workers and loads every model; rejects when a provider cannot load. */
  static async open(options: SessionPoolOptions): Promise<SessionPool> {
    const workers = Math.max(1, Math.min(options.workers, options.threads));
    const slots = Array.from({ length: workers }, () =>
      openWorker(options, Math.floor(options.threads / workers)),
    );
    try {
      const ready = await Promise.all(slots.map(async (slot) => untilReady(slot)));
      return new SessionPool(options, slots, ready[0]!);
    } catch (error) {
      await Promise.all(slots.map(async (slot) => slot.worker.terminate()));
      throw error;
    }
  }

  private constructor(
    options: SessionPoolOptions,
    slots: readonly Slot[],
    ready: { provider: 'cpu' | 'cuda'; fallback: string | undefined },
  ) {
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

  /** Whether a worker would take a batch of this kind now. */
  hasRoom(kind: BatchKind): boolean {
    return this.#slots.some((slot) => held(slot, kind) < heldPerKind);
  }

  get workers(): number {
    return this.#slots.length;
  }

  /** Runs a batch on the worker with the fewest padded tokens ahead of it. */
  async run(batch: Omit<BatchMessage, 'type' | 'batchId'>): Promise<BatchResult> {
    const slot = this.#slots
      .filter((candidate) => held(candidate, batch.kind) < heldPerKind)
      .reduce<Slot | undefined>(
        (best, each) => (best === undefined || load(each) < load(best) ? each : best),
        undefined,
      );
    assertInvariant(slot !== undefined && !this.#closed, 'a batch came to a pool without room');
    const batchId = this.#nextBatchId++;
    return new Promise<BatchResult>((resolve, reject) => {
      slot.flights.set(batchId, {
        kind: batch.kind,
        paddedTokens: batch.paddedLength * batch.lengths.length,
        startedAt: undefined,
        resolve,
        reject,
      });
      const message: BatchMessage = { ...batch, type: 'batch', batchId };
      const arrays = [message.ids, message.lengths, message.attended, message.kept];
      const transferred = arrays
        .filter((array) => array !== undefined)
        .map((array) => array.buffer as ArrayBuffer);
      slot.worker.postMessage(message, transferred);
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watchdog);
    await Promise.all(this.#slots.map(async (slot) => slot.worker.terminate()));
  }

  #receive(slot: Slot, message: WorkerReply): void {
    if (message.type === 'ready' || message.type === 'failed') return;
    const flight = slot.flights.get(message.batchId);
    assertInvariant(flight !== undefined, 'a worker answered a batch that it was not given');
    if (message.type === 'started') {
      flight.startedAt = performance.now();
      return;
    }
    slot.flights.delete(message.batchId);
    if (message.type === 'error') {
      flight.reject(new Error(`inference failed: ${message.message}`));
    } else {
      const startedAt = performance.now() - message.runMs;
      flight.resolve({ output: message.output, runMs: message.runMs, startedAt });
    }
  }

  #watch(): void {
    const now = performance.now();
    for (const { flights } of this.#slots) {
      for (const { startedAt } of flights.values()) {
        if (startedAt !== undefined && now - startedAt > this.#options.stuckMs) {
          this.#die(`a batch has been running for ${Math.round(now - startedAt)} ms`);
        }
      }
    }
  }

  #die(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watchdog);
    for (const { flights } of this.#slots) {
      for (const flight of flights.values()) flight.reject(new Error(reason));
      flights.clear();
    }
    this.#options.onFatal(reason);
  }
}

function openWorker({ models, provider, deviceId }: SessionPoolOptions, intraOpThreads: number): Slot {
  const entry = new URL(`./session-worker${path.extname(import.meta.filename)}`, import.meta.url);
  const data: SessionWorkerData = { models, provider, deviceId, intraOpThreads };
  return { worker: new Worker(entry, { workerData: data }), flights: new Map() };
}

async function untilReady(slot: Slot): Promise<{ provider: 'cpu' | 'cuda'; fallback: string | undefined }> {
  return new Promise((resolve, reject) => {
    slot.worker.once('error', reject);
    slot.worker.once('message', (message: WorkerReply) => {
      if (message.type === 'ready') resolve(message);
      else
        reject(new Error(message.type === 'failed' ? message.message : 'a worker spoke before it was ready'));
    });
  });
}

function held(slot: Slot, kind: BatchKind): number {
  let count = 0;
  for (const flight of slot.flights.values()) if (flight.kind === kind) count++;
  return count;
}

function load(slot: Slot): number {
  let tokens = 0;
  for (const flight of slot.flights.values()) tokens += flight.paddedTokens;
  return tokens;
}
