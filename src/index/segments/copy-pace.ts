/**
 * How fast merges copy, all indexes of a process together: what they read and write competes with searches
 * for the disk, the page cache and the memory bus. Copying runs ahead of its pace by one batch and then
 * waits, so a copy that is slow by itself is not slowed further.
 */
import { setTimeout as wait } from 'node:timers/promises';

/** Shorter waits than this are saved up: a timer is no finer. */
const waitMsMin = 2;

export class CopyPace {
  readonly #bytesPerMs: number;
  /** When everything spent so far is paid for, in `performance.now()`. */
  #paidAt = 0;

  /** `Infinity` = unpaced. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerMs = bytesPerSecond / 1000;
  }

  /**
   * Resolves when these bytes may have been copied. `haste` >= 1 multiplies the pace: of a merge that the
   * writers are leaving behind. Rejects when `signal` cuts the wait short.
   */
  async spend(bytes: number, haste: number, signal?: AbortSignal): Promise<void> {
    const now = performance.now();
    this.#paidAt = Math.max(this.#paidAt, now) + bytes / (this.#bytesPerMs * haste);
    if (this.#paidAt - now >= waitMsMin) await wait(this.#paidAt - now, undefined, { signal });
  }
}
