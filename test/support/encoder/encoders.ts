/** Encoders for the tests: real processes on real models. */
import { onTestFinished } from 'vitest';
import { createEncoderPool, type EncoderPoolOptions } from '../../../src/encoder/client/pool.ts';
import type {
  EncodedDocument,
  EncodeDocumentsOptions,
  EncodeOptions,
  EncoderPool,
} from '../../../src/encoder/protocol/contract.ts';
import type { EndpointEvent } from '../../../src/encoder/client/endpoint.ts';
import {
  type EncoderSupervisor,
  type EncoderSupervisorOptions,
  superviseEncoders,
} from '../../../src/encoder/supervision/supervisor.ts';
import { eventually, hangMs } from '../running/eventually.ts';
import { tinyModel } from './models.ts';

export interface Encoders {
  readonly supervisor: EncoderSupervisor;
  readonly pool: EncoderPool;
  readonly events: EndpointEvent[];
  readonly logs: string[];
  close(): Promise<void>;
}

export interface SpawnedEncoders {
  readonly supervisor: EncoderSupervisor;
  readonly logs: string[];
}

/** Spawns one encoder, by default of the tiny model, without waiting for it. */
export async function spawnEncoders(
  options: Partial<EncoderSupervisorOptions> = {},
): Promise<SpawnedEncoders> {
  const logs: string[] = [];
  const supervisor = await superviseEncoders({
    processes: 1,
    modelDirectories: [tinyModel],
    provider: 'cpu',
    threads: 1,
    onLog: (line) => logs.push(line),
    ...options,
  });
  return { supervisor, logs };
}

/** Spawns encoders and waits until the pool is ready. */
export async function startEncoders(
  options: Partial<EncoderSupervisorOptions> = {},
  poolOptions: Partial<EncoderPoolOptions> = {},
): Promise<Encoders> {
  const { supervisor, logs } = await spawnEncoders(options);
  const events: EndpointEvent[] = [];
  const pool = createEncoderPool({
    addresses: supervisor.addresses,
    exclusive: true,
    onEvent: (event) => events.push(event),
    ...poolOptions,
  });
  const close = async (): Promise<void> => {
    await pool.close();
    await supervisor.close();
  };
  try {
    await supervisor.ready;
    await eventually(() => pool.ready());
  } catch (error) {
    await close();
    throw new Error(`the encoders did not start:\n${logs.join('\n')}`, { cause: error });
  }
  return { supervisor, pool, events, logs, close };
}

/** Spawns encoders and waits until the pool is ready. They are closed at the end of the test. */
export async function encodersOfTest(
  options: Partial<EncoderSupervisorOptions> = {},
  poolOptions: Partial<EncoderPoolOptions> = {},
): Promise<Encoders> {
  const encoders = await startEncoders(options, poolOptions);
  onTestFinished(async () => encoders.close());
  return encoders;
}

/** Options of a call to the first model of a pool. */
export function callOptions(pool: EncoderPool, changes: Partial<EncodeOptions> = {}): EncodeOptions {
  const [model] = pool.models();
  return {
    model: model ?? { name: 'colbert-tiny', version: '1' },
    tenantId: 'tenant',
    deadlineMs: Date.now() + hangMs,
    signal: new AbortController().signal,
    ...changes,
  };
}

/** All documents of a call, in the order of the texts. */
export async function encodeAll(
  pool: EncoderPool,
  texts: readonly string[],
  changes: Partial<EncodeDocumentsOptions> = {},
): Promise<EncodedDocument[]> {
  const documents: EncodedDocument[] = [];
  const options: EncodeDocumentsOptions = {
    ...callOptions(pool),
    chunking: { maxTokens: 20, overlapTokens: 4, minimumChunkTokens: 2 },
    onTokenCounts: () => undefined,
    ...changes,
  };
  for await (const document of pool.encodeDocuments(texts, options)) documents.push(document);
  return documents.toSorted((a, b) => a.documentIndex - b.documentIndex);
}
