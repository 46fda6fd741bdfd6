/** The generations that readers look at. Versions that died after the oldest of them must stay readable. */
export class SnapshotPins {
  readonly #readers = new Map<number, number>();

  pin(generation: number): void {
    this.#readers.set(generation, (this.#readers.get(generation) ?? 0) + 1);
  }

  unpin(generation: number): void {
    const readers = (this.#readers.get(generation) ?? 0) - 1;
    if (readers > 0) this.#readers.set(generation, readers);
    else this.#readers.delete(generation);
  }

  /** The oldest generation that a reader looks at, or `current` when none is older. */
  oldest(current: number): number {
    let oldest = current;
    for (const generation of this.#readers.keys()) oldest = Math.min(oldest, generation);
    return oldest;
  }
}
