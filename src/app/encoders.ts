/** The encoders of this process: local ones that it supervises, or the addresses it was given. */
import { stat } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { ConfigError, type Config } from './config.ts';
import { readConfigured } from './configured-file.ts';
import { createEncoderPool, type EncoderPoolOptions } from '../encoder/client/pool.ts';
import type { Encoder, EncoderStatistics } from '../encoder/protocol/contract.ts';
import { superviseEncoders, type EncoderSupervisor } from '../encoder/supervision/supervisor.ts';
import type { Logger } from '../logging.ts';
import { isLocalAddress } from '../loopback.ts';
import { modelDirectoryOf } from './model-choice.ts';

export interface Encoders {
  readonly encoder: Encoder;
  /** Resolves when an encoder serves; rejects when none can. */
  readonly ready: Promise<void>;
  /** Times an encoder was taken into or out of use, or gave a corrupt reply. */
  readonly events: ReadonlyMap<string, number>;
  /** Reports on each encoder, by a name that outlives it: its address, or `local-N`. */
  statistics(): Promise<readonly (EncoderStatistics & { readonly name: string })[]>;
  close(): Promise<void>;
}

/** How long encoders may take to serve. Local ones load, verify and warm up a model first. */
const readyMsMax = { local: 240_000, remote: 60_000 };

export async function startEncoders(config: Config, logger: Logger): Promise<Encoders> {
  const isRemote = config.MAXSIMD_ENCODERS.length > 0;
  const tls = isRemote ? await remoteTls(config) : undefined;
  // From here on nothing may fail before there is something to close: there are child processes.
  const supervisor = isRemote ? undefined : await superviseLocal(config);
  const events = new Map<string, number>();
  const admitted = Promise.withResolvers<void>();
  const encoder = createEncoderPool({
    addresses: supervisor?.addresses ?? config.MAXSIMD_ENCODERS,
    // Other api processes may use encoders that run elsewhere.
    exclusive: supervisor !== undefined,
    healWaitMs: config.MAXSIMD_ENCODER_WAIT_MS,
    ...(tls === undefined ? {} : { tls }),
    onEvent({ event, address, reason }) {
      events.set(event, (events.get(event) ?? 0) + 1);
      logger[event === 'admitted' ? 'info' : 'warn']({ event, address, reason }, 'encoder');
      if (event === 'admitted') admitted.resolve();
    },
  });
  const closed = Promise.withResolvers<never>();
  const ready = readiness(supervisor, admitted.promise, closed.promise);
  // Awaited once everything else is up.
  ready.catch(() => undefined);
  return {
    encoder,
    ready,
    events,
    async statistics() {
      return (await encoder.statistics()).map((reported) => {
        const local = supervisor?.addresses.indexOf(reported.address) ?? -1;
        return { ...reported, name: local === -1 ? reported.address : `local-${local}` };
      });
    },
    async close() {
      closed.reject(new Error('the encoders were closed before they were ready'));
      await encoder.close();
      await supervisor?.close();
    },
  };
}

async function superviseLocal(config: Config): Promise<EncoderSupervisor> {
  const { dev, ino } = await stat(config.MAXSIMD_DATA_DIR);
  return await superviseEncoders({
    // One server at a time holds the data directory, whatever path leads to it.
    name: `${dev.toString(36)}-${ino.toString(36)}`,
    processes: config.MAXSIMD_ENCODER_PROCESSES,
    modelDirectories: [await modelDirectoryOf(config)],
    provider: config.MAXSIMD_PROVIDER,
    threads: config.MAXSIMD_ENCODER_THREADS,
    residentBytesMax: residentBytesMax(config),
    devices: config.MAXSIMD_DEVICES,
    logLevel: config.MAXSIMD_LOG_LEVEL,
    extraArguments: ['--batch-tokens', String(config.MAXSIMD_BATCH_TOKENS)],
    onLog: (line) => process.stderr.write(`${line}\n`),
  });
}

/** What was asked for, or this share of the memory there is, divided among the processes. */
const memoryShareMax = 0.6;

function residentBytesMax(config: Config): number {
  if (config.MAXSIMD_ENCODER_MEMORY_MIB > 0) return config.MAXSIMD_ENCODER_MEMORY_MIB * 2 ** 20;
  // Undefined or beyond the machine where nothing constrains the process.
  const available = Math.min(process.constrainedMemory() || Infinity, totalmem());
  return (available * memoryShareMax) / config.MAXSIMD_ENCODER_PROCESSES;
}

async function readiness(
  supervisor: EncoderSupervisor | undefined,
  admitted: Promise<void>,
  closed: Promise<never>,
): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer =
    supervisor === undefined
      ? setTimeout(
          late.reject,
          readyMsMax.remote,
          new ConfigError('MAXSIMD_ENCODERS: none of the addresses serves'),
        )
      : setTimeout(
          late.reject,
          readyMsMax.local,
          new Error('the encoders did not start in time; their log may say why'),
        );
  try {
    await Promise.race([Promise.all([supervisor?.ready, admitted]), late.promise, closed]);
  } finally {
    clearTimeout(timer);
  }
}

async function remoteTls(config: Config): Promise<EncoderPoolOptions['tls']> {
  const {
    MAXSIMD_ENCODER_TLS_CA_FILE: caFile,
    MAXSIMD_ENCODER_TLS_CERT_FILE: certFile,
    MAXSIMD_ENCODER_TLS_KEY_FILE: keyFile,
  } = config;
  if (caFile === '') {
    assertSafePlain(config);
    return undefined;
  }
  const ca = await readConfigured('MAXSIMD_ENCODER_TLS_CA_FILE', caFile);
  if (certFile === '') return { ca };
  return {
    ca,
    certificate: await readConfigured('MAXSIMD_ENCODER_TLS_CERT_FILE', certFile),
    key: await readConfigured('MAXSIMD_ENCODER_TLS_KEY_FILE', keyFile),
  };
}

/** Texts must not cross a network in the clear by accident. */
function assertSafePlain(config: Config): void {
  const far = config.MAXSIMD_ENCODERS.find((address) => !isLocalAddress(address));
  if (far === undefined || config.MAXSIMD_ALLOW_PLAIN_ENCODERS) return;
  throw new ConfigError(
    `MAXSIMD_ENCODERS: ${far} is not a loopback address; give MAXSIMD_ENCODER_TLS_CA_FILE, or in a network of your own set MAXSIMD_ALLOW_PLAIN_ENCODERS=true`,
  );
}
