/**
 * Measures how long work holds the event loop. The processor time of the thread excludes other processes, but some kernels count
 * it in ticks. The clock is precise, but includes other processes. A turn took no longer than either of them says.
 */

export interface Turns {
  /** The time of the longest turn. */
  readonly longestMs: number;
  /** The sum over all turns in which something was done. Between these turns only the measurement runs. */
  readonly busyMs: number;
  /** Processor time from the beginning to the end. It includes the measurement. */
  readonly processorMs: number;
}

/** The largest time that a count in ticks may leave out. */
const tickMs = 4;
/** A turn of the measurement alone takes a few microseconds, so a shorter turn than this did nothing else. */
const idleMs = 0.05;

export async function turnsOf<Result>(work: () => Promise<Result>): Promise<Turns & { result: Result }> {
  let longestMs = 0;
  let busyMs = 0;
  let turning = true;
  const start = process.threadCpuUsage();
  let before = process.threadCpuUsage();
  let beganAt = performance.now();
  const turn = (): void => {
    const { user, system } = process.threadCpuUsage(before);
    const ms = Math.min(performance.now() - beganAt, (user + system) / 1000 + tickMs);
    longestMs = Math.max(longestMs, ms);
    if (ms > idleMs) busyMs += ms;
    before = process.threadCpuUsage();
    beganAt = performance.now();
    if (turning) setImmediate(turn);
  };
  setImmediate(turn);
  const result = await work();
  turning = false;
  turn();
  const { user, system } = process.threadCpuUsage(start);
  return { longestMs, busyMs, processorMs: (user + system) / 1000, result };
}

/** The run with the shortest longest turn. Other processes make a processor slower: they share its caches and its clock. */
export async function calmestOf<Result>(
  runs: number,
  work: () => Promise<Result>,
): Promise<Turns & { result: Result }> {
  const first = await turnsOf(work);
  if (runs === 1) return first;
  const other = await calmestOf(runs - 1, work);
  return other.longestMs < first.longestMs ? other : first;
}
