/** The best of many by score. */
export class BestOf {
  readonly #capacity: number;
  readonly #found: { readonly key: number; readonly score: number }[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** The best first. Of equal scores the one that was offered earlier comes first. */
  get keys(): readonly number[] {
    return this.#found.map(({ key }) => key);
  }

  /** Keeps the highest score of a key. Returns whether this one is among the best now. */
  offer(key: number, score: number): boolean {
    const found = this.#found;
    if (found.length === this.#capacity && !(score > found.at(-1)!.score)) return false;
    const before = found.findIndex((each) => each.key === key);
    if (before !== -1) {
      if (found[before]!.score >= score) return false;
      found.splice(before, 1);
    }
    const after = found.findIndex((each) => each.score < score);
    found.splice(after === -1 ? found.length : after, 0, { key, score });
    found.length = Math.min(found.length, this.#capacity);
    return true;
  }
}
