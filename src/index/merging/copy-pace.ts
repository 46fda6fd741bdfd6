/**
 * Bounds how fast the merges of all indexes of a process copy, because they compete with searches for the disk, the page
 * cache and the memory bus. A copy runs ahead of its pace by one batch and then waits. So a copy that is slow by itself is
 * not slowed further.
 */
import { setTimeout as wait } from 'node:timers/promises';

/** A timer is no finer than this. Shorter waits are added to the next one. */
const waitMsMin = 2;

export class CopyPace {
  readonly #bytesPerMs: number;
  /** When the pace allows everything that was spent so far, by `performance.now`. */
  #paidAt = 0;

  /** `Infinity` = unpaced. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerMs = bytesPerSecond / 1000;
  }

  /**
   * Resolves when the pace allows these bytes. `haste`, at least 1, multiplies the pace of a merge that writers outrun.
   * Rejects when `signal` aborts the wait.
   */
  async spend(bytes: number, haste: number, signal?: AbortSignal): Promise<void> {
    const now = performance.now();
    this.#paidAt = Math.max(this.#paidAt, now) + bytes / (this.#bytesPerMs * haste);
    if (this.#paidAt - now >= waitMsMin) await wait(this.#paidAt - now, undefined, { signal });
  }
}
