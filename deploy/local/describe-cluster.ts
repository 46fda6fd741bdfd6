/** Describes a cluster of `npm run cluster`: its addresses, and the variables for the command line. */
import type { LocalCluster } from './cluster.ts';
import { freePort, isFree } from './free-port.ts';

const usualPort = 8080;

/** The port of the balancer. `chosen` is the port that the user set, if any. Throws when it is in use. */
export async function portOf(chosen: string | undefined, usual = usualPort): Promise<number> {
  if (chosen === undefined) return (await isFree(usual)) ? usual : freePort();
  const port = Number(chosen);
  if (!/^\d+$/.test(chosen) || port > 65535) {
    throw new Error(
      `MAXSIMD_HTTP_PORT must be a whole number from 0 to 65535, got ${JSON.stringify(chosen)}`,
    );
  }
  if (port === 0) return freePort();
  if (await isFree(port)) return port;
  throw new Error(
    `MAXSIMD_HTTP_PORT: port ${port} of 127.0.0.1 is in use; choose another, or 0 for any free one`,
  );
}

/** Lines for the user. Some of them are to be pasted, so that every command uses the cluster. */
export function describeCluster(cluster: LocalCluster, apiKey: string): string {
  const variables = { MAXSIMD_URL: cluster.url, MAXSIMD_API_KEY: apiKey, ...cluster.environment };
  const lines = Object.entries(variables).map(([name, value]) => `  export ${name}=${quoted(value)}`);
  return `
balancer   ${cluster.url}
nodes      ${cluster.nodes.map(({ url }) => url).join(' ')}
PostgreSQL ${cluster.postgres.url}
S3         ${cluster.seaweed.environment['AWS_ENDPOINT_URL_S3']}, bucket ${cluster.seaweed.bucket}
Redis      ${cluster.redis.url}
files      ${cluster.directory}

For the command line in another terminal (search, tenant limits, cluster status):

${lines.join('\n')}

Ctrl-C ends all of it and removes the files.
`;
}

function quoted(value: string): string {
  return /^[\w./:@,=-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
