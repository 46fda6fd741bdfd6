/**
 * The time of day at the start of the process, and from then on by the monotonic clock. If the system's clock is set forward, rate
 * windows must not empty at once.
 */
export function steadyNowMs(): number {
  return performance.timeOrigin + performance.now();
}
