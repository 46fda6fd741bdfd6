/** The recent delay of the event loop. A percentile since the start would hide what happens now. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const windowMs = 10_000;
const resolutionMs = 5;

/** Covers the current window of ten seconds and the one before it. */
export class LoopDelay {
  readonly #histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  #previousP99Ms = 0;

  constructor() {
    this.#histogram.enable();
    setInterval(() => {
      this.#previousP99Ms = this.#currentP99Ms();
      this.#histogram.reset();
    }, windowMs).unref();
  }

  p99Ms(): number {
    return Math.max(this.#previousP99Ms, this.#currentP99Ms());
  }

  /** The histogram's values include the interval of its timer. */
  #currentP99Ms(): number {
    return this.#histogram.count === 0 ? 0 : Math.max(0, this.#histogram.percentile(99) / 1e6 - resolutionMs);
  }
}
