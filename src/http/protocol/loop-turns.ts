/**
 * Work that can come in crowds, one piece a turn of the event loop: between two turns everything else gets its
 * own.
 */
export class LoopTurns {
  #waiting: (() => void)[] = [];

  /** Runs `work` in a turn of its own, first come, first served. */
  run(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(() => this.#turn());
  }

  /** Resolves in a turn of its own; what follows belongs to it as far as it does not wait. */
  next(): Promise<void> {
    return new Promise((resolve) => this.run(resolve));
  }

  #turn(): void {
    this.#waiting[0]?.();
    this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(() => this.#turn());
  }
}
