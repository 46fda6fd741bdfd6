/** A lock with many holders or one. It serves in the order of arrival, so that neither kind starves. */
export class SharedLock {
  #holders = 0;
  #exclusive = false;
  readonly #waiting: { readonly exclusive: boolean; readonly enter: () => void }[] = [];

  /** Runs `work` while nobody holds the lock exclusively. */
  shared<T>(work: () => Promise<T>): Promise<T> {
    return this.#run(false, work);
  }

  /** Does the same ahead of all who wait, for work that the holders wait for. */
  sharedFirst<T>(work: () => Promise<T>): Promise<T> {
    return this.#run(false, work, true);
  }

  /** Runs `work` while nobody else holds the lock. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#run(true, work);
  }

  async #run<T>(exclusive: boolean, work: () => Promise<T>, first = false): Promise<T> {
    await new Promise<void>((enter) => {
      if (first) this.#waiting.unshift({ exclusive, enter });
      else this.#waiting.push({ exclusive, enter });
      this.#admit();
    });
    try {
      return await work();
    } finally {
      this.#holders -= 1;
      this.#exclusive = false;
      this.#admit();
    }
  }

  #admit(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined || this.#exclusive || (next.exclusive && this.#holders > 0)) return;
      this.#waiting.shift();
      this.#holders += 1;
      this.#exclusive = next.exclusive;
      next.enter();
    }
  }
}
