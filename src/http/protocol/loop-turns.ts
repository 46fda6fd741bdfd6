/** Runs one piece of work in each turn of the event loop, so that many pieces at once do not hold it up. */
export class LoopTurns {
  #waiting: (() => void)[] = [];

  /** Runs `work` in a turn of its own, in the order of the calls. */
  run(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(() => this.#turn());
  }

  /** Resolves in a turn of its own. Code after it belongs to that turn until it waits. */
  next(): Promise<void> {
    return new Promise((resolve) => this.run(resolve));
  }

  #turn(): void {
    this.#waiting[0]?.();
    this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(() => this.#turn());
  }
}
