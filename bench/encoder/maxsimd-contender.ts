/** Our side: the encoder process, called over gRPC as the server does it. */
import type { EncodeDocumentsOptions, Encoder, EncoderModel } from '../../src/encoder/contract.ts';
import type { ServedModel } from '../../src/encoder/served-model.ts';
import { startEncoder } from '../lib/encoder-pool.ts';
import { processCounters } from '../lib/process-counters.ts';
import type { Contender, Mix, RoundTiming } from './contender.ts';
import type { Device } from '../lib/device.ts';
import { halfValue } from '../lib/agreement.ts';
import { chunkTokensMax } from '../lib/texts.ts';

/** Documents of one call, as the largest upsert has them, and calls at a time. */
const documentsPerCall = 50;
const documentCalls = 2;

export interface MaxsimdOptions {
  readonly modelDirectory: string;
  readonly model: ServedModel;
  readonly device: Device;
}

export async function openMaxsimd({ modelDirectory, model, device }: MaxsimdOptions): Promise<Contender> {
  const { pool, processIds, close } = await startEncoder(modelDirectory, device);
  return new Maxsimd(pool, model, processIds, close);
}

class Maxsimd implements Contender {
  readonly close: () => Promise<void>;
  readonly #pool: Encoder;
  readonly #model: ServedModel;
  readonly #processIds: () => readonly number[];
  #mix: Mix | undefined;

  constructor(
    pool: Encoder,
    model: ServedModel,
    processIds: () => readonly number[],
    close: () => Promise<void>,
  ) {
    this.#pool = pool;
    this.#model = model;
    this.#processIds = processIds;
    this.close = close;
  }

  async prepare(mix: Mix): Promise<string> {
    this.#mix = mix;
    await this.#encode(mix);
    return mix.kind === 'query'
      ? `gRPC, ${mix.inFlight} in flight`
      : `gRPC, ${documentCalls} calls of ${documentsPerCall} at a time`;
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

  /** The rows as scores see them: the mean that centring took from documents is added again. */
  async vectors(texts: number): Promise<readonly Float32Array[]> {
    const { kind, texts: all } = this.#prepared();
    const some = all.slice(0, texts);
    if (kind === 'query') {
      return Promise.all(
        some.map(async (text) => (await this.#pool.encodeQuery(text, this.#options())).vectors),
      );
    }
    const { dim, session } = this.#model;
    const result: Float32Array[] = some.map(() => new Float32Array());
    for await (const { documentIndex, vectors, scales } of this.#pool.encodeDocuments(
      some,
      this.#documentOptions(),
    )) {
      result[documentIndex] = Float32Array.from(
        vectors,
        (value, i) => value * halfValue(scales[Math.floor(i / dim)]!) + (session.centring?.[i % dim] ?? 0),
      );
    }
    return result;
  }

  async #encode({ kind, texts, inFlight }: Mix): Promise<void> {
    if (kind === 'query') {
      await concurrently(texts, inFlight, async (text) => this.#pool.encodeQuery(text, this.#options()));
      return;
    }
    const calls = Array.from({ length: Math.ceil(texts.length / documentsPerCall) }, (_, i) =>
      texts.slice(i * documentsPerCall, (i + 1) * documentsPerCall),
    );
    await concurrently(calls, documentCalls, async (documents) => {
      let left = documents.length;
      for await (const { chunkRows } of this.#pool.encodeDocuments(documents, this.#documentOptions())) {
        left -= chunkRows.length;
      }
      if (left !== 0) throw new Error('this is a bug: a text of a mix is not one chunk');
    });
  }

  #options() {
    const [model] = this.#pool.models() as readonly [EncoderModel];
    return {
      model: model.name,
      modelVersion: model.version,
      tenantId: 'bench',
      deadlineMs: Date.now() + 600_000,
      signal: new AbortController().signal,
    };
  }

  #documentOptions(): EncodeDocumentsOptions {
    return {
      ...this.#options(),
      chunking: { maxTokens: chunkTokensMax, overlapTokens: 32, minimumChunkTokens: 16 },
      onTokenCounts: () => undefined,
    };
  }

  #cpuSeconds(): number {
    const { user, system } = process.cpuUsage();
    return this.#processIds().reduce(
      (sum, id) => sum + processCounters(id).cpuSeconds,
      (user + system) / 1e6,
    );
  }

  #prepared(): Mix {
    if (this.#mix === undefined) throw new Error('this is a bug: no mix was prepared');
    return this.#mix;
  }
}

/** Runs a task for every item, so many at a time. */
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
