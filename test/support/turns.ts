/**
 * What work costs the event loop. The processor's time of a thread leaves out what else the machine does, but some
 * kernels count it in ticks; the clock is fine, but goes on while others run. A turn took no more than either says.
 */

export interface Turns {
  /** What the longest turn took. */
  readonly longestMs: number;
  /** Sum over the turns that did something; between them the watch itself spins. */
  readonly busyMs: number;
  /** Time of the processor from the beginning to the end, the watch included. */
  readonly processorMs: number;
}

/** What a count in ticks may leave out. */
const tickMs = 4;
/** A turn with nothing but the watch takes a few microseconds. */
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
