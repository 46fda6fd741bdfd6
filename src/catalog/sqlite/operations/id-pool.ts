/**
 * Gives identifiers from memory, of blocks that are reserved durably in the catalog. So an upsert rarely waits for one. A crash
 * loses the rest of a block. No identifier is ever given twice, not even by two processes.
 */
export class IdPool {
  readonly #reserve: (count: number) => Promise<number>;
  readonly #blockSize: number;
  #next = 0;
  #end = 0;
  #turn: Promise<unknown> = Promise.resolve();

  /** `reserve` durably reserves `count` consecutive identifiers and returns the first. */
  constructor(reserve: (count: number) => Promise<number>, blockSize: number) {
    this.#reserve = reserve;
    this.#blockSize = blockSize;
  }

  /** Returns increasing identifiers, in the order of the calls. */
  allocate(count: number): Promise<readonly number[]> {
    const ids = this.#turn.then(() => this.#take(count));
    // A failed reservation fails its own call, not the next one.
    this.#turn = ids.catch(() => undefined);
    return ids;
  }

  async #take(count: number): Promise<readonly number[]> {
    const ids = this.#fromBlock(count);
    const missing = count - ids.length;
    if (missing === 0) return ids;
    const size = Math.max(missing, this.#blockSize);
    this.#next = await this.#reserve(size);
    this.#end = this.#next + size;
    return [...ids, ...this.#fromBlock(missing)];
  }

  #fromBlock(count: number): readonly number[] {
    const first = this.#next;
    this.#next = Math.min(this.#end, first + count);
    return Array.from({ length: this.#next - first }, (_, place) => first + place);
  }
}
