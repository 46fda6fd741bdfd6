/**
 * Entry of an encoder process. Prints one JSON line when it is ready; logs JSON lines on standard error; leaves when its
 * parent's IPC channel closes, so no encoder outlives a killed api process; drains on SIGTERM.
 */
import { ServerCredentials } from '@grpc/grpc-js';
import { readFileSync } from 'node:fs';
import { createLogger } from '../logging.ts';
import { type EncoderArguments, inferenceThreads, parseEncoderArguments } from './arguments.ts';
import { budgetKey, readBudget } from './budget-cache.ts';
import { hasCudaLibrary } from './cuda-library.ts';
import { EncoderCore } from './encoder-core.ts';
import { tuneBudget } from './idle-tuning.ts';
import { LoopDelay } from './loop-delay.ts';
import { createEncoderServer } from './server.ts';
import { loadModel } from './served-model.ts';
import { SessionPool } from './session-pool.ts';
import { removeStaleSocket } from './stale-socket.ts';
import { idleBeforeSweepMs, sweepWanted, tuning } from './tuning.ts';
import { checkGolden, warmUp } from './warm-up.ts';

const given = parseEncoderArguments(process.argv.slice(2));
const log = createLogger({ level: given['log-level'] }).child({ process: 'encoder' });

process.on('uncaughtException', (error) => end(70, 'uncaught exception', error));
process.on('unhandledRejection', (error) => end(70, 'unhandled rejection', error));
process.on('disconnect', () => end(0, 'the parent has gone'));

try {
  await start(given);
} catch (error) {
  // No request has been seen: the message can hold nothing of one.
  end(78, `start-up failed: ${(error as Error).message}`, error);
}

async function start(options: EncoderArguments): Promise<void> {
  const startedAt = performance.now();
  const models = await Promise.all(options['model-dir'].map(async (directory) => loadModel(directory)));
  const loop = new LoopDelay();
  const pool = await SessionPool.open({
    models: models.map((model) => model.session),
    provider: options.provider,
    deviceId: options.device,
    threads: inferenceThreads(options),
    workers: options.workers,
    stuckMs: options['stuck-ms'],
    onFatal: (reason) => end(75, reason),
  });
  if (pool.fallback !== undefined) {
    // Most machines have none: that is worth no warning.
    const level = hasCudaLibrary() ? 'warn' : 'info';
    log[level]({ reason: pool.fallback }, 'CUDA did not load; using the CPU');
  }
  const { provider, workers } = pool;
  const memory = { file: options['budget-cache'], key: budgetKey({ models, options, provider, workers }) };
  const found = memory.file === '' ? undefined : readBudget(memory)?.batchTokens;
  const limits = tuning(options, provider, found);
  const core = new EncoderCore(models, pool, limits);
  const server = createEncoderServer({
    core,
    provider: pool.provider,
    deviceId: options.device,
    log,
    loopDelayP99Ms: () => loop.p99Ms(),
  });
  await removeStaleSocket(options.listen);
  const port = await server.listen(options.listen, credentials(options));
  await warmUp(core, provider, limits);
  await checkGolden(core, pool.provider);
  const ending = new AbortController();
  const tune = async (idleMs: number): Promise<void> => {
    const { documentBatchTokens: batchTokens } = limits;
    await tuneBudget({ core, provider, workers, batchTokens, idleMs, signal: ending.signal, memory, log });
  };
  const wanted = sweepWanted(options, found);
  if (wanted === 'start') await tune(0);
  server.serve();
  if (wanted === 'idle') void tune(idleBeforeSweepMs);

  let draining = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (draining) return;
      draining = true;
      log.info({ signal }, 'draining');
      ending.abort();
      void server.drain().then(() => end(0, 'drained'));
    });
  }
  const ready = {
    event: 'ready',
    address: options.listen.startsWith('unix:')
      ? options.listen
      : options.listen.replace(/:\d+$/, `:${port}`),
    models: models.map(({ name, version, dim }) => ({ name, version, dim })),
    provider: pool.provider,
    workers: pool.workers,
    batch_tokens: limits.documentBatchTokens,
    start_ms: Math.round(performance.now() - startedAt),
  };
  log.info(ready, 'ready');
  process.stdout.write(`${JSON.stringify(ready)}\n`);
}

function credentials(options: EncoderArguments): ServerCredentials {
  if (options['tls-cert'] === '') return ServerCredentials.createInsecure();
  const clientCa = options['tls-client-ca'] === '' ? null : readFileSync(options['tls-client-ca']);
  return ServerCredentials.createSsl(
    clientCa,
    [{ cert_chain: readFileSync(options['tls-cert']), private_key: readFileSync(options['tls-key']) }],
    clientCa !== null,
  );
}

function end(code: number, reason: string, error?: unknown): void {
  if (code === 0) log.info(reason);
  else log.fatal({ err: error }, reason);
  // Worker threads may be inside a run that nothing can interrupt.
  process.exit(code);
}
