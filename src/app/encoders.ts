/** The encoders of this process: local ones that it supervises, or the addresses it was given. */
import { stat } from 'node:fs/promises';
import { ConfigError, isClustered, type Config } from './config.ts';
import { readConfigured } from './configured-file.ts';
import { createEncoderPool, type EncoderPoolOptions } from '../encoder/client/pool.ts';
import type { EndpointEvent } from '../encoder/client/endpoint.ts';
import type { EncoderPool, EncoderStatistics } from '../encoder/protocol/contract.ts';
import type { Logger } from '../logging.ts';
import { isLocalAddress } from '../loopback.ts';
import { startLocalEncoders } from './local-encoders.ts';

/** Statistics of an encoder under a name that outlives it. */
export type NamedStatistics = EncoderStatistics & { readonly name: string };

export interface Encoders {
  readonly pool: EncoderPool;
  /** Resolves when an encoder serves the default model; rejects when none can. */
  readonly ready: Promise<void>;
  /** Times an encoder was taken into or out of use, or gave a corrupt reply. */
  readonly events: ReadonlyMap<string, number>;
  /** Reports on each encoder. */
  statistics(): Promise<readonly NamedStatistics[]>;
  close(): Promise<void>;
}

/** How long encoders elsewhere may take to serve. */
const readyMsMax = 60_000;

export async function startEncoders(config: Config, logger: Logger): Promise<Encoders> {
  const events = new Map<string, number>();
  const onEvent = ({ event, address, reason }: EndpointEvent): void => {
    events.set(event, (events.get(event) ?? 0) + 1);
    logger[event === 'admitted' ? 'info' : 'warn']({ event, address, reason }, 'encoder');
  };
  if (config.MAXSIMD_ENCODERS.length > 0) {
    return { ...(await remoteEncoders(config, onEvent)), events };
  }
  const { dev, ino } = await stat(config.MAXSIMD_DATA_DIR);
  // One server at a time holds the data directory, whatever path leads to it; nodes of a host may share it.
  const sharer = isClustered(config) ? `-${process.pid.toString(36)}` : '';
  const name = `${dev.toString(36)}-${ino.toString(36)}${sharer}`;
  return { ...(await startLocalEncoders(config, { name, logger, onEvent })), events };
}

async function remoteEncoders(
  config: Config,
  onEvent: (event: EndpointEvent) => void,
): Promise<Omit<Encoders, 'events'>> {
  const tls = await remoteTls(config);
  const first = Promise.withResolvers<void>();
  const pool = createEncoderPool({
    addresses: config.MAXSIMD_ENCODERS,
    // Other api processes may use them too.
    exclusive: false,
    healWaitMs: config.encoderWaitMs,
    ...(tls === undefined ? {} : { tls }),
    onEvent(event) {
      onEvent(event);
      if (event.event === 'admitted') first.resolve();
    },
  });
  const late = setTimeout(
    () => first.reject(new ConfigError('MAXSIMD_ENCODERS: none of the addresses serves')),
    readyMsMax,
  );
  const ready = first.promise.finally(() => clearTimeout(late));
  // Awaited once everything else is up.
  ready.catch(() => undefined);
  return {
    pool: pool,
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

/** Texts must not cross a network in the clear by accident. */
function assertSafePlain(config: Config): void {
  const far = config.MAXSIMD_ENCODERS.find((address) => !isLocalAddress(address));
  if (far === undefined || config.MAXSIMD_ALLOW_PLAIN.includes('encoders')) return;
  throw new ConfigError(
    `MAXSIMD_ENCODERS: ${far} is not a loopback address; set MAXSIMD_ENCODER_TLS_FILES, or MAXSIMD_ALLOW_PLAIN=encoders in a network of your own`,
  );
}
