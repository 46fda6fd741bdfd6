/** The usage period: the UTC calendar month. */

export function monthOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 7);
}

/** The first instants of the month and of the next one, in milliseconds since the epoch. */
export function monthBounds(nowMs: number): { readonly startMs: number; readonly endMs: number } {
  const now = new Date(nowMs);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return { startMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
}

export function secondsToNextMonth(nowMs: number): number {
  return Math.ceil((monthBounds(nowMs).endMs - nowMs) / 1000);
}
