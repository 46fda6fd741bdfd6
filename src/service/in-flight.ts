import { once } from './once.ts';

/** Counts the work that is going on, and says when all of it has ended. */
export class InFlight {
  #count = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  get count(): number {
    return this.#count;
  }

  /** Counts one more. The returned function ends it. */
  enter(): () => void {
    this.#count += 1;
    return once(() => {
      this.#count -= 1;
      if (this.#count === 0) this.#idle?.resolve();
    });
  }

  /** Resolves when nothing is going on. */
  async idle(): Promise<void> {
    while (this.#count > 0) {
      this.#idle = Promise.withResolvers();
      await this.#idle.promise;
    }
  }
}
