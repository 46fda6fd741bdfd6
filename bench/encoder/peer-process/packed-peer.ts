/**
 * No encoder around this runtime can be faster than this side. Its packed batches are prepared before, only `run` is timed, and
 * the batch size is the fastest one here. Each core may have a session, or one session may use all cores. The machine and other
 * work on it decide which is faster, so both are measured in every round.
 */
import { Worker } from 'node:worker_threads';
import type { ServedModel } from '../../../src/encoder/model/served-model.ts';
import { type Contender, fastestOf, type Mix, type RoundTiming } from '../contender.ts';
import type { Device } from '../../lib/model/device.ts';
import { fetchesOf } from './onnxruntime-loop.ts';
import { settingsFor } from '../../lib/model/onnxruntime-session.ts';
import type { PackedRequest, PackedWorkerData } from './packed-worker.ts';
import { packSequences } from './packing.ts';
import { timed } from './timed.ts';

/** Positions of a batch to choose from. */
const batchTokens = { cpu: [256, 512, 1024], cuda: [4096, 8192, 16_384, 32_768] };
/** Positions that a sweep runs for each choice, spread over all lengths. */
const sweepPositions = 8192;

/** A session of one thread for every core. */
export function openSessionPerCore(model: ServedModel, device: Device): Contender {
  return new Packed(model, { ...device, threads: 1 }, device.threads);
}

/** One session; on the CPU it spreads every operator over all cores, as the runtime does by default. */
export function openOneSession(model: ServedModel, device: Device): Contender {
  return new Packed(model, device, 1);
}

class Packed implements Contender {
  readonly #model: ServedModel;
  readonly #sessions: Sessions;
  readonly #device: Device;
  readonly #description: string;

  constructor(model: ServedModel, device: Device, sessions: number) {
    const { usesTokenTypeIds } = model.session;
    this.#model = model;
    this.#device = device;
    this.#sessions = new Sessions(sessions, { settings: settingsFor(model, device), usesTokenTypeIds });
    this.#description =
      device.provider === 'cuda' ? 'one session' : `${sessions} x ${device.threads} threads`;
  }

  async prepare(mix: Mix): Promise<string> {
    const fetches = fetchesOf(this.#model, mix.kind);
    const options = batchTokens[this.#device.provider].map((tokens) => ({
      tokens,
      batches: packSequences(mix.sequences, tokens),
    }));
    const { tokens, batches } = await fastestOf(options, async (option) => {
      await this.#sessions.send({ type: 'prepare', batches: option.batches, fetches });
      const wanted = Math.max(1, Math.round(sweepPositions / option.tokens));
      await this.#sessions.run(Math.max(1, Math.floor(option.batches.length / wanted)));
    });
    await this.#sessions.send({ type: 'prepare', batches, fetches });
    return `${tokens} positions a batch, ${this.#description}`;
  }

  async round(): Promise<RoundTiming> {
    return timed(async () => this.#sessions.run(1));
  }

  async vectors(): Promise<undefined> {
    return undefined;
  }

  async close(): Promise<void> {
    await this.#sessions.close();
  }
}

/** Worker threads with a session each. */
class Sessions {
  readonly #workers: readonly Worker[];

  constructor(count: number, workerData: PackedWorkerData) {
    const entry = new URL('./packed-worker.ts', import.meta.url);
    this.#workers = Array.from({ length: count }, () => new Worker(entry, { workerData }));
  }

  /** Every `step`-th batch once, on whichever worker is free. */
  async run(step: number): Promise<void> {
    await this.send({ type: 'run', next: new Int32Array(new SharedArrayBuffer(4)), step });
  }

  async send(request: PackedRequest): Promise<void> {
    await Promise.all(this.#workers.map(async (worker) => ask(worker, request)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map(async (worker) => worker.terminate()));
  }
}

async function ask(worker: Worker, request: PackedRequest): Promise<void> {
  const answered = Promise.withResolvers<void>();
  worker.once('message', answered.resolve);
  worker.once('error', answered.reject);
  worker.postMessage(request, []);
  try {
    await answered.promise;
  } finally {
    worker.off('message', answered.resolve);
    worker.off('error', answered.reject);
  }
}
