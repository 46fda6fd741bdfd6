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

  /** The work that runs now for a key. */
  running(key: unknown): Promise<Outcome> | undefined {
    return this.#running.get(key);
  }

  /** Resolves when all work that runs now has ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }
}
