/** Where the service listens. A place that cannot be had is an error that names its variable, before anything is opened. */
import { createServer, type AddressInfo, type Server } from 'node:net';
import { hasCode } from '../system-errors.ts';
import { ConfigError, usualMetricsPort, type Config } from './config.ts';

export interface Place {
  /** Its variables are `<name>_HOST` and `<name>_PORT`. */
  readonly name: 'MAXSIMD_HTTP' | 'MAXSIMD_METRICS' | 'MAXSIMD_ADMIN';
  readonly host: string;
  readonly port: number;
}

/** Looks whether the ports that were chosen can be had: what a start opens takes seconds. */
export async function checkPorts(config: Config): Promise<void> {
  const { MAXSIMD_METRICS_PORT: metricsPort } = config;
  const places: readonly Place[] = [
    { name: 'MAXSIMD_HTTP', host: config.MAXSIMD_HTTP_HOST, port: config.MAXSIMD_HTTP_PORT },
    { name: 'MAXSIMD_ADMIN', host: config.MAXSIMD_ADMIN_HOST, port: config.MAXSIMD_ADMIN_PORT },
    {
      name: 'MAXSIMD_METRICS',
      host: config.MAXSIMD_METRICS_HOST,
      port: metricsPort === 'auto' ? 0 : metricsPort,
    },
  ];
  for (const { name, host, port } of places) {
    if (port === -1) continue;
    const server = createServer();
    await listenAt({ name, host, port }, () => listen(server, host, port));
    await new Promise((resolve) => server.close(resolve));
  }
}

/** A failure of `listen` in words that name the variable. */
export async function listenAt<T>({ name, host, port }: Place, listening: () => Promise<T>): Promise<T> {
  try {
    return await listening();
  } catch (error) {
    throw explained(error, { name, host, port });
  }
}

function explained(error: unknown, { name, host, port }: Place): unknown {
  if (hasCode(error, 'EADDRINUSE')) {
    return new ConfigError(
      `${name}_PORT: port ${port} of ${host} is in use; choose another, or 0 for any free one`,
      { cause: error },
    );
  }
  if (hasCode(error, 'EACCES')) {
    return new ConfigError(`${name}_PORT: this user may not listen on port ${port} of ${host}`, {
      cause: error,
    });
  }
  if (hasCode(error, 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN')) {
    return new ConfigError(`${name}_HOST: ${host} is not an address of this machine`, { cause: error });
  }
  return error;
}

/** The port of the metrics listener, which is printed where it was not chosen. */
export async function listenForMetrics(server: Server, config: Config): Promise<void> {
  const { MAXSIMD_METRICS_HOST: host, MAXSIMD_METRICS_PORT: chosen } = config;
  if (chosen === -1) return;
  if (chosen !== 'auto') {
    await listenAt({ name: 'MAXSIMD_METRICS', host, port: chosen }, () => listen(server, host, chosen));
    if (chosen === 0) process.stderr.write(`maxsimd: metrics on port ${portOf(server)}\n`);
    return;
  }
  try {
    await listen(server, host, usualMetricsPort);
  } catch (error) {
    if (!hasCode(error, 'EADDRINUSE'))
      throw explained(error, { name: 'MAXSIMD_METRICS', host, port: usualMetricsPort });
    await listen(server, host, 0);
    process.stderr.write(
      `maxsimd: metrics on port ${portOf(server)}: ${usualMetricsPort} is in use (MAXSIMD_METRICS_PORT chooses one)\n`,
    );
  }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ host, port }, resolve);
  await promise;
  server.off('error', reject);
}
