/** Reads the Prometheus text that a server started with `metrics` exposes. */
import type { ServerProcess } from './server.ts';

/** The value of one line, named as it stands there (labels included). */
export async function readMetric(server: ServerProcess, line: string): Promise<number> {
  if (server.metricsUrl === undefined) throw new Error('this server was started without metrics');
  const text = await (await fetch(server.metricsUrl)).text();
  const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `));
  if (found === undefined) throw new Error(`no metric ${line}`);
  return Number(found.slice(line.length + 1));
}
