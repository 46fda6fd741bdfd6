/** Wall and CPU time of a task in this process. */
import type { RoundTiming } from '../contender.ts';

export async function timed(task: () => Promise<unknown>): Promise<RoundTiming> {
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await task();
  const wallSeconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { wallSeconds, cpuSeconds: (user + system) / 1e6 };
}
