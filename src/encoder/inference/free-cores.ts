/** How many cores of this host are free at this moment. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Cores that no other thread of any process runs on or waits for. 0 where the system does not tell. */
export function freeCores(): number {
  if (process.platform !== 'linux') return 0;
  // The fourth field is `runnable/all` threads. The calling thread is one of the runnable ones.
  const runnable = Number(/ (\d+)\//.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1]);
  return availableParallelism() - (runnable - 1);
}
