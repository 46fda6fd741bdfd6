/** The encoders of this process: those that it starts and supervises, or those at the addresses of `MAXSIMD_ENCODERS`. */
import { stat } from 'node:fs/promises';
import { ConfigError, isClustered, readConfigured, type Config } from './config.ts';
import { createEncoderPool, type EncoderPoolOptions } from '../encoder/client/pool.ts';
import type { EndpointEvent } from '../encoder/client/endpoint.ts';
import type { EncoderPool, EncoderStatistics } from '../encoder/protocol/contract.ts';
import type { Logger } from '../observation/logging.ts';
import { isLocalAddress } from '../loopback.ts';
import { type ModelUses, startLocalEncoders } from './local-encoders.ts';
import type { ModelReference } from './models/default-model.ts';

/** Statistics of an encoder under a name that its replacement keeps. */
export type NamedStatistics = EncoderStatistics & { readonly name: string };

export interface Encoders {
  readonly pool: EncoderPool;
  /** The model versions that any request may name: those that are installed, or those that every encoder elsewhere serves. */
  offered(): readonly ModelReference[];
  /**
   * Resolves when an encoder serves the default model, and those of models with indexes serve or have failed. Rejects when
   * none can serve the default model.
   */
  readonly ready: Promise<void>;
  /** Counts of events: an encoder was admitted, ejected, removed, or sent a corrupt reply. */
  readonly events: ReadonlyMap<string, number>;
  statistics(): Promise<readonly NamedStatistics[]>;
  close(): Promise<void>;
}

/** How long encoders elsewhere may take to serve. */
const readyMsMax = 60_000;

export async function startEncoders(config: Config, logger: Logger, catalog: ModelUses): Promise<Encoders> {
  const events = new Map<string, number>();
  const onEvent = ({ event, address, reason }: EndpointEvent): void => {
    events.set(event, (events.get(event) ?? 0) + 1);
    const isUsual = event === 'admitted' || event === 'removed';
    logger[isUsual ? 'info' : 'warn']({ event, address, reason }, 'encoder');
  };
  if (config.MAXSIMD_ENCODERS.length > 0) {
    return { ...(await remoteEncoders(config, onEvent)), events };
  }
  const { dev, ino } = await stat(config.MAXSIMD_DATA_DIR);
  // One server at a time owns a data directory, whatever its path is. Nodes of one host may share it.
  const sharer = isClustered(config) ? `-${process.pid.toString(36)}` : '';
  const name = `${dev.toString(36)}-${ino.toString(36)}${sharer}`;
  return { ...(await startLocalEncoders(config, { name, logger, onEvent, catalog })), events };
}

async function remoteEncoders(
  config: Config,
  onEvent: (event: EndpointEvent) => void,
): Promise<Omit<Encoders, 'events'>> {
  const tls = await remoteTls(config);
  const first = Promise.withResolvers<void>();
  const pool = createEncoderPool({
    addresses: config.MAXSIMD_ENCODERS,
    exclusive: false,
    healWaitMs: config.encoderWaitMs,
    ...(tls === undefined ? {} : { tls }),
    onEvent(event) {
      onEvent(event);
      if (event.event === 'admitted') first.resolve();
    },
  });
  let offered: readonly ModelReference[] = [];
  const late = setTimeout(
    () => first.reject(new ConfigError('MAXSIMD_ENCODERS: no encoder at these addresses serves')),
    readyMsMax,
  );
  const ready = first.promise.finally(() => clearTimeout(late));
  // Awaited once everything else is up.
  ready.catch(() => undefined);
  return {
    pool,
    offered() {
      const served = pool.modelsOfAll();
      // Encoders that are away come back with the models that they had.
      if (served.length > 0) offered = served;
      return offered;
    },
    ready,
    statistics: async () =>
      (await pool.statistics()).map((reported) => ({ ...reported, name: reported.address })),
    async close() {
      first.reject(new Error('the encoders were closed before they were ready'));
      await pool.close();
    },
  };
}

async function remoteTls(config: Config): Promise<EncoderPoolOptions['tls']> {
  const files = config.MAXSIMD_ENCODER_TLS_FILES.map((file) =>
    readConfigured('MAXSIMD_ENCODER_TLS_FILES', file),
  );
  const [ca, certificate, key] = await Promise.all(files);
  if (ca === undefined) {
    assertSafePlain(config);
    return undefined;
  }
  return certificate === undefined || key === undefined ? { ca } : { ca, certificate, key };
}

/** Texts must not cross a network without TLS by accident. */
function assertSafePlain(config: Config): void {
  const far = config.MAXSIMD_ENCODERS.find((address) => !isLocalAddress(address));
  if (far === undefined || config.MAXSIMD_ALLOW_PLAIN.includes('encoders')) return;
  throw new ConfigError(
    `MAXSIMD_ENCODERS: ${far} is not a loopback address; set MAXSIMD_ENCODER_TLS_FILES, or MAXSIMD_ALLOW_PLAIN=encoders in a network of your own`,
  );
}
