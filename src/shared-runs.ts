/** Runs a piece of work once at a time for each key. Callers that ask for it meanwhile share its outcome. */
export class SharedRuns<Outcome = void> {
  readonly #running = new Map<unknown, Promise<Outcome>>();

  get busy(): boolean {
    return this.#running.size > 0;
  }

  run(work: () => Promise<Outcome>, key?: unknown): Promise<Outcome> {
    const known = this.#running.get(key);
    if (known !== undefined) return known;
    const running = work().finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }

  /** Resolves when the work that runs now has ended: that of `key`, or all. */
  async settled(...key: readonly unknown[]): Promise<void> {
    const running = key.length === 0 ? this.#running.values() : key.map((one) => this.#running.get(one));
    await Promise.allSettled(running);
  }
}
