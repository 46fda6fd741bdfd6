/** Our own encoder for a benchmark: processes under the supervisor, called over gRPC, as the server does it. */
import { createEncoderPool } from '../../../src/encoder/client/pool.ts';
import type {
  EncodeDocumentsOptions,
  EncoderPool,
  EncodeOptions,
  EncoderModel,
} from '../../../src/encoder/protocol/contract.ts';
import { superviseEncoders } from '../../../src/encoder/supervision/supervisor.ts';
import type { Device } from './device.ts';

export interface Encoders {
  readonly addresses: readonly string[];
  readonly pool: EncoderPool;
  /** Encoders that were started here. */
  readonly processIds: () => readonly number[];
  /** Options of a call for the one model that is served. */
  readonly callOptions: () => EncodeOptions;
  readonly documentOptions: (chunkTokens: number) => EncodeDocumentsOptions;
  readonly close: () => Promise<void>;
}

/** Resolves when the pool serves the model of the directory. A failure has the output of the process. */
export async function startEncoder(modelDirectory: string, device: Device): Promise<Encoders> {
  const logs: string[] = [];
  const supervisor = await superviseEncoders({
    processes: 1,
    modelDirectories: [modelDirectory],
    provider: device.provider,
    devices: [device.index],
    threads: device.threads,
    onLog: (line) => logs.push(line),
  });
  try {
    await supervisor.ready;
    const connected = await connectEncoder(supervisor.addresses);
    return {
      ...connected,
      processIds: () => supervisor.processIds(),
      close: async () => {
        await connected.close();
        await supervisor.close();
      },
    };
  } catch (error) {
    await supervisor.close();
    throw new Error(`our encoder did not start:\n${logs.join('\n')}`, { cause: error });
  }
}

/** A client of encoders that run already. */
export async function connectEncoder(addresses: readonly string[]): Promise<Encoders> {
  const admitted = Promise.withResolvers<void>();
  const pool = createEncoderPool({
    addresses,
    onEvent: ({ event }) => {
      if (event === 'admitted') admitted.resolve();
    },
  });
  await admitted.promise;
  const callOptions = (): EncodeOptions => {
    const [model] = pool.models() as readonly [EncoderModel];
    return {
      model,
      tenantId: 'bench',
      deadlineMs: Date.now() + 600_000,
      signal: new AbortController().signal,
    };
  };
  return {
    addresses,
    pool,
    processIds: () => [],
    callOptions,
    documentOptions: (maxTokens) => ({
      ...callOptions(),
      chunking: {
        maxTokens,
        overlapTokens: Math.floor(maxTokens / 8),
        minimumChunkTokens: Math.floor(maxTokens / 16),
      },
      onTokenCounts: () => undefined,
    }),
    close: async () => pool.close(),
  };
}
