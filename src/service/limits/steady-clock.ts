/**
 * The time of day as it was when the process started, and from then on by the clock that nobody sets. One that is set
 * forward would empty every rate window at once.
 */
export function steadyNowMs(): number {
  return performance.timeOrigin + performance.now();
}
