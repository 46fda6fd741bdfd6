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
  readonly pool: EncoderPool;
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
  const admitted = Promise.withResolvers<void>();
  const pool = createEncoderPool({
    addresses: supervisor.addresses,
    onEvent: ({ event }) => {
      if (event === 'admitted') admitted.resolve();
    },
  });
  const close = async (): Promise<void> => {
    await pool.close();
    await supervisor.close();
  };
  try {
    await supervisor.ready;
    await admitted.promise;
  } catch (error) {
    await close();
    throw new Error(`our encoder did not start:\n${logs.join('\n')}`, { cause: error });
  }
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
    pool,
    processIds: () => supervisor.processIds(),
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
    close,
  };
}
