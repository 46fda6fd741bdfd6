/** Reads the Prometheus text that a server started with `metrics` exposes. */
import type { ServerProcess } from './server.ts';

/** The value of a metric, or of one series of it; of a metric with labels the sum over them. */
export async function readMetric(server: Pick<ServerProcess, 'metricsUrl'>, name: string): Promise<number> {
  if (server.metricsUrl === undefined) throw new Error('this server was started without metrics');
  const text = await (await fetch(server.metricsUrl)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  if (lines.length === 0) throw new Error(`no metric ${name}`);
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
