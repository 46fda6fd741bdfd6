/**
 * The whole service on this thread, with the API process and the encoder process in one. HTTP, operations, catalog, engine, files,
 * gRPC, tokenizer and scheduler are real. The model takes no time. So the clock of one thread shows how long a request holds both
 * event loops together. If that is within a bound, so is each of them.
 */
import { noPooling } from '../../../src/encoder/protocol/row-places.ts';
import { ServerCredentials } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { generateApiKey, hashApiKey } from '../../../src/catalog/api-key.ts';
import { openCatalog } from '../../../src/catalog/sqlite/open-catalog.ts';
import { createEncoderPool } from '../../../src/encoder/client/pool.ts';
import type { BatchOutput } from '../../../src/encoder/inference/session-protocol.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import { EncoderCore, type InferencePool } from '../../../src/encoder/scheduling/encoder-core.ts';
import { createEncoderServer } from '../../../src/encoder/server/encoder-server.ts';
import { parseEncoderArguments } from '../../../src/encoder/server/arguments.ts';
import { tuning } from '../../../src/encoder/server/tuning.ts';
import { createRequestObserver } from '../../../src/http/observation.ts';
import { createHttpServer } from '../../../src/http/server.ts';
import { createEngine } from '../../../src/index/engine/native.ts';
import { openLocalBlobStore } from '../../../src/index/storage/local-blob-store.ts';
import { createLogger } from '../../../src/observation/logging.ts';
import { createMetrics } from '../../../src/observation/metrics.ts';
import { createService } from '../../../src/service/create-service.ts';
import { MemoryLimiter } from '../../../src/service/limits/memory-limiter.ts';
import { eventually } from '../running/eventually.ts';
import { defaultModel } from '../encoder/models.ts';
import { wordScaleBits } from '../encoder/word-vectors.ts';

export interface OneThreadStage {
  readonly app: FastifyInstance;
  /** A tenant whose limits are never reached. */
  readonly apiKey: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function openOneThreadStage(): Promise<OneThreadStage> {
  const directory = await mkdtemp(path.join(tmpdir(), 'maxsimd-one-thread-'));
  await using opened = new AsyncDisposableStack();
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  const logger = createLogger({ level: 'info', destination: { write: () => undefined } });

  const model = await loadModel(defaultModel);
  const address = `unix:${path.join(directory, 'e')}`;
  const limits = tuning(parseEncoderArguments([`--model-dir=${defaultModel}`, `--listen=${address}`]), 'cpu');
  const encoders = createEncoderServer({
    core: new EncoderCore([model], instantSessions(model.dim), limits),
    provider: 'cpu',
    deviceId: 0,
    log: logger,
    loopDelayP99Ms: () => 0,
  });
  await encoders.listen(address, ServerCredentials.createInsecure());
  encoders.serve();
  const encoder = createEncoderPool({ addresses: [address], exclusive: true });
  opened.defer(async () => {
    await encoder.close();
    await encoders.drain();
  });
  await eventually(() => encoder.ready());

  const catalog = await openCatalog({ directory });
  const { id, apiKey } = generateApiKey();
  await catalog.createTenant({
    id: randomUUID(),
    name: 'tenant',
    limits: {
      requestsPerMinute: 1_000_000,
      maxConcurrentRequests: 1000,
      inputTokens: 1n << 50n,
      documents: 1_000_000,
    },
    key: { id, hash: hashApiKey(apiKey, catalog.keyPepper()) },
  });
  const service = await createService({
    catalog,
    encoders: encoder,
    engine: createEngine({ threads: 1, kernel: 'auto' }),
    blobs: await openLocalBlobStore(path.join(directory, 'segments')),
    limiter: await MemoryLimiter.restore(catalog, Date.now()),
    keyPepper: catalog.keyPepper(),
    modelOfMoment: (name = model.name) => ({ name }),
    exactTokenVectorsMax: 0,
    onBackgroundError: (_job, error) => {
      throw error;
    },
  });
  opened.defer(() => service.drain());
  const app = await createHttpServer({ service, observer: createRequestObserver(logger, createMetrics()) });
  opened.defer(() => app.close());
  const owned = opened.move();
  return { app, apiKey, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Sessions without a model. Like a worker they hold a running batch and one more. Each batch ends in a turn of its own. */
function instantSessions(dim: number): InferencePool {
  let running = 0;
  return {
    workers: 1,
    roomFor: () => (running < 2 ? Infinity : 0),
    run: async ({ kind, rows }) => {
      running += 1;
      await turn();
      running -= 1;
      return { output: output(kind, rows, dim), runMs: 1, rowsMs: 0, startedAt: performance.now() };
    },
  };
}

function output(kind: BatchOutput['kind'], rows: number, dim: number): BatchOutput {
  return kind === 'query'
    ? { kind, vectors: new Float32Array(rows * dim).fill(0.1), offsets: new Float32Array(rows) }
    : {
        kind,
        vectors: new Int8Array(rows * dim).fill(7),
        scales: new Uint16Array(rows).fill(wordScaleBits),
        ...noPooling(),
      };
}
