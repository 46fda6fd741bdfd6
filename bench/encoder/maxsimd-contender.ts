/** Our side: the encoder process, called over gRPC as the server does it. */
import { Rotation } from '../../src/encoder/inference/rows.ts';
import type { ServedModel } from '../../src/encoder/model/served-model.ts';
import { connectEncoder, startEncoder, type Encoders } from '../lib/model/encoder-pool.ts';
import { processSeconds } from '../lib/service/process-counters.ts';
import type { Contender, Mix, RoundTiming } from './contender.ts';
import type { Device } from '../lib/model/device.ts';
import { dequantised } from '../lib/vectors.ts';
import { chunkTokensMax } from '../lib/texts.ts';

/** The largest upsert has as many documents as one call. Several calls run at a time, because a batch of a GPU holds more than one. */
const documentsPerCall = 50;
const documentCalls = { cpu: 2, cuda: 8 };

export interface PairOptions {
  readonly modelDirectory: string;
  readonly model: ServedModel;
  readonly device: Device;
  /** The address of an encoder process that runs already. Without it one is started. */
  readonly address?: string | undefined;
}

/** An encoder process, and its client in this one. */
export async function openPair({ modelDirectory, model, device, address }: PairOptions): Promise<Contender> {
  const encoder =
    address === undefined ? await startEncoder(modelDirectory, device) : await connectEncoder([address]);
  return new Maxsimd(encoder, model, documentCalls[device.provider]);
}

class Maxsimd implements Contender {
  readonly #encoder: Encoders;
  readonly #model: ServedModel;
  readonly #calls: number;
  #mix: Mix | undefined;

  constructor(encoder: Encoders, model: ServedModel, calls: number) {
    this.#encoder = encoder;
    this.#model = model;
    this.#calls = calls;
  }

  async close(): Promise<void> {
    await this.#encoder.close();
  }

  async prepare(mix: Mix): Promise<string> {
    this.#mix = mix;
    await this.#encode(mix);
    return mix.kind === 'query'
      ? `gRPC, ${mix.inFlight} in flight`
      : `gRPC, ${this.#calls} calls of ${documentsPerCall} at a time`;
  }

  async round(): Promise<RoundTiming> {
    const mix = this.#prepared();
    const cpuBefore = this.#cpuSeconds();
    const startedAt = performance.now();
    await this.#encode(mix);
    const wallSeconds = (performance.now() - startedAt) / 1000;
    const cpuSeconds = this.#cpuSeconds() - cpuBefore;
    return { wallSeconds, cpuSeconds: cpuSeconds > 0 ? cpuSeconds : undefined };
  }

  /** Rows to which the mean is added that centring subtracts from documents. Those of models with few bits are rotated. */
  async vectors(texts: number): Promise<readonly Float32Array[]> {
    const { kind, texts: all } = this.#prepared();
    const some = all.slice(0, texts);
    const { pool, callOptions, documentOptions } = this.#encoder;
    if (kind === 'query') {
      return Promise.all(some.map(async (text) => (await pool.encodeQuery(text, callOptions())).vectors));
    }
    const mean = this.#model.session.centring?.slice();
    if (mean !== undefined && this.#model.rowBits < 8) new Rotation(mean.length).apply(mean);
    const result: Float32Array[] = some.map(() => new Float32Array());
    for await (const document of pool.encodeDocuments(some, documentOptions(chunkTokensMax))) {
      result[document.documentIndex] = dequantised(document, this.#model, mean);
    }
    return result;
  }

  async #encode({ kind, texts, inFlight }: Mix): Promise<void> {
    const { pool, callOptions, documentOptions } = this.#encoder;
    if (kind === 'query') {
      await concurrently(texts, inFlight, async (text) => pool.encodeQuery(text, callOptions()));
      return;
    }
    const calls = Array.from({ length: Math.ceil(texts.length / documentsPerCall) }, (_, i) =>
      texts.slice(i * documentsPerCall, (i + 1) * documentsPerCall),
    );
    await concurrently(calls, this.#calls, async (documents) => {
      let left = documents.length;
      for await (const { chunkRows } of pool.encodeDocuments(documents, documentOptions(chunkTokensMax))) {
        left -= chunkRows.length;
      }
      if (left !== 0) throw new Error('this is a bug: a text of a mix is not one chunk');
    });
  }

  #cpuSeconds(): number {
    const { user, system } = process.cpuUsage();
    return this.#encoder.processIds().reduce((sum, id) => sum + processSeconds(id), (user + system) / 1e6);
  }

  #prepared(): Mix {
    if (this.#mix === undefined) throw new Error('this is a bug: no mix was prepared');
    return this.#mix;
  }
}

/** Runs a task for every item, `atATime` of them at once. */
async function concurrently<T>(
  items: readonly T[],
  atATime: number,
  task: (item: T) => Promise<unknown>,
): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: atATime }, async () => {
      for (const item of queue) await task(item);
    }),
  );
}
