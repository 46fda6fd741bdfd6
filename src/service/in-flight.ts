/** How much is going on, and when it has ended. */
export class InFlight {
  #count = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  get count(): number {
    return this.#count;
  }

  /** Returns what ends it; only the first call counts. */
  enter(): () => void {
    this.#count += 1;
    let entered = true;
    return () => {
      if (!entered) return;
      entered = false;
      this.#count -= 1;
      if (this.#count === 0) this.#idle?.resolve();
    };
  }

  /** Resolves when nothing is going on. */
  async idle(): Promise<void> {
    while (this.#count > 0) {
      this.#idle = Promise.withResolvers();
      await this.#idle.promise;
    }
  }
}
