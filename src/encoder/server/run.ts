/**
 * An encoder process. It prints one JSON line when it is ready, and logs JSON lines to standard error. It drains on SIGTERM. It ends
 * when the IPC channel to its parent closes, so that no encoder outlives a killed api process.
 */
import { ServerCredentials } from '@grpc/grpc-js';
import { readFileSync } from 'node:fs';
import { onceAsked } from '../../process/end-signals.ts';
import { hasCode } from '../../system-errors.ts';
import { createLogger, type Logger } from '../../observation/logging.ts';
import {
  ArgumentError,
  type EncoderArguments,
  inferenceThreads,
  parseEncoderArguments,
} from './arguments.ts';
import { hasCudaLibrary } from '../inference/cuda/cuda-library.ts';
import { EncoderCore } from '../scheduling/encoder-core.ts';
import { LoopDelay } from './loop-delay.ts';
import { createEncoderServer } from './encoder-server.ts';
import { startDocumentTokenizer } from '../model/tokenizer/document-tokenizer.ts';
import { loadModels } from '../model/served-model.ts';
import { SessionPool } from '../inference/session-pool.ts';
import { removeSocketDirectory } from '../protocol/socket-directory.ts';
import { tuning } from './tuning.ts';
import { checkGolden, warmUp } from './warm-up.ts';
import { collectYoungBuffers, forbidCoreDumps } from '../../process/process-tuning.ts';

/** The exit code of wrong arguments, as for the command line. */
const usageExitCode = 2;

let log: Logger;
let sessions: SessionPool | undefined;

/** `asked` aborts when the process is asked to end. */
export async function runEncoder(args: readonly string[], asked: AbortSignal): Promise<void> {
  forbidCoreDumps();
  const given = parsed(args);
  if (given === undefined) return;
  log = createLogger({ level: given['log-level'] }).child({ process: 'encoder' });
  process.on('uncaughtException', (error) => abandon('uncaught exception', error));
  process.on('unhandledRejection', (error) => abandon('unhandled rejection', error));
  process.on('disconnect', () => {
    removeSocketDirectory(given.listen);
    void leave('the parent has gone');
  });
  try {
    await start(given, asked);
  } catch (error) {
    if (asked.aborted) return leave('asked to end before it was ready');
    // There was no request yet, so the message holds nothing of one.
    end(78, `start-up failed: ${(error as Error).message}`, error);
  }
}

/** Undefined when the arguments are wrong. Then the message is printed and the exit code set. */
function parsed(args: readonly string[]): EncoderArguments | undefined {
  try {
    return parseEncoderArguments(args);
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    process.stderr.write(`maxsimd encoder: ${error.message}\n`);
    process.exitCode = usageExitCode;
    return undefined;
  }
}

async function start(options: EncoderArguments, asked: AbortSignal): Promise<void> {
  collectYoungBuffers();
  const startedAt = performance.now();
  const models = await loadModels({
    required: options['model-dir'],
    optional: options['optional-model-dir'],
    // There is no request yet, so the message holds nothing of one.
    onLeftOut: ({ message: reason }) => log.error({ reason }, 'a damaged model version is left out'),
  });
  asked.throwIfAborted();
  const loop = new LoopDelay();
  const pool = await SessionPool.open({
    models: models.map((model) => model.session),
    provider: options.provider,
    deviceId: options.device,
    threads: inferenceThreads(options),
    workers: options.workers,
    stuckMs: options['stuck-ms'],
    onFatal: abandon,
  });
  if (pool.fallback !== undefined) {
    // Most machines have no CUDA, so that is no warning.
    const level = hasCudaLibrary() ? 'warn' : 'debug';
    log[level]({ reason: pool.fallback }, 'CUDA did not load; using the CPU');
  }
  sessions = pool;
  asked.throwIfAborted();
  const limits = tuning(options, pool.provider);
  const core = new EncoderCore(models, pool, limits, abandon, await startDocumentTokenizer(models, abandon));
  const server = createEncoderServer({
    core,
    provider: pool.provider,
    deviceId: options.device,
    log,
    loopDelayP99Ms: () => loop.p99Ms(),
  });
  const port = await server.listen(options.listen, credentials(options)).catch((error: unknown) => {
    throw hasCode(error, 'EADDRINUSE') ? new Error(`--listen: ${options.listen} is in use`) : error;
  });
  onceAsked(asked, () => {
    log.info({ signal: String(asked.reason) }, 'draining');
    void server.drain().then(async () => leave('drained'));
  });
  await warmUp(core, pool.provider, limits);
  await checkGolden(core, pool.provider);
  asked.throwIfAborted();
  server.serve();
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

/** Ends the process after the running batches, also those of callers who have left: the runtime would crash in the middle of one. */
async function leave(reason: string): Promise<void> {
  await sessions?.close();
  end(0, reason);
}

function end(code: number, reason: string, error?: unknown): void {
  if (code === 0) log.info(reason);
  else log.fatal({ err: error }, reason);
  process.exit(code);
}

/** Ends the process at once. An exit would first wait for the threads, and the run of a model may never end. */
function abandon(reason: string, error?: unknown): void {
  log.fatal({ err: error }, reason);
  process.kill(process.pid, 'SIGKILL');
}
