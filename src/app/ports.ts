/** The listeners' addresses. One that cannot be used ends the start with the name of its variable, before anything is opened. */
import { createServer, type AddressInfo, type Server } from 'node:net';
import { hasCode } from '../system-errors.ts';
import { ConfigError, usualMetricsPort, type Config } from './config.ts';

export interface Place {
  /** Its variables are `<name>_HOST` and `<name>_PORT`. */
  readonly name: 'MAXSIMD_HTTP' | 'MAXSIMD_METRICS' | 'MAXSIMD_ADMIN';
  readonly host: string;
  readonly port: number;
}

/** Checks that the chosen ports are free, before the start opens files and processes, which takes seconds. */
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
    if (port !== -1) await listenAt({ name, host, port }, () => assertPortIsFree({ host, port }));
  }
}

/** Listeners that share a port refuse this one, which does not. */
export async function assertPortIsFree({ host, port }: Pick<Place, 'host' | 'port'>): Promise<void> {
  const server = createServer();
  await listen(server, host, port);
  await new Promise((resolve) => server.close(resolve));
}

/** Makes a failure of `listen` an error that names the variable. */
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

/** Prints the port of the metrics listener if it was not chosen. */
export async function listenForMetrics(server: Server, config: Config): Promise<void> {
  const { MAXSIMD_METRICS_HOST: host, MAXSIMD_METRICS_PORT: chosen } = config;
  if (chosen === -1) return;
  const port = chosen === 'auto' ? usualMetricsPort : chosen;
  try {
    await listen(server, host, port);
    if (chosen === 0) process.stderr.write(`maxsimd: metrics on port ${portOf(server)}\n`);
  } catch (error) {
    if (chosen !== 'auto' || !hasCode(error, 'EADDRINUSE'))
      throw explained(error, { name: 'MAXSIMD_METRICS', host, port });
    await listen(server, host, 0);
    process.stderr.write(
      `maxsimd: metrics on port ${portOf(server)}: ${port} is in use (MAXSIMD_METRICS_PORT chooses one)\n`,
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
