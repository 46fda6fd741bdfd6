/**
 * Writes items to a stream whose messages hold several: what is ready at a time, and what comes while a write is under way,
 * leaves together. A message costs either end about as much as the rest of its work on a short query.
 */
interface ItemStream<Item> {
  write(message: { items: Item[] }, taken: () => void): unknown;
  end(): unknown;
}

/** With the largest query or answer in each, a message stays within what the other end takes. */
const messageItemsMax = 16;

export class ItemWriter<Item> {
  readonly #stream: ItemStream<Item>;
  #waiting: { readonly item: Item; readonly taken: (() => void) | undefined }[] = [];
  #busy = false;
  #ended = false;

  constructor(stream: ItemStream<Item>) {
    this.#stream = stream;
  }

  /** Calls `taken` when the transport has taken the item. */
  write(item: Item, taken?: () => void): void {
    this.#waiting.push({ item, taken });
    if (this.#busy) return;
    this.#busy = true;
    process.nextTick(() => this.#next());
  }

  /** Ends the stream after what was written before. */
  end(): void {
    this.#ended = true;
    if (!this.#busy) this.#stream.end();
  }

  #next(): void {
    const leaving = this.#waiting.splice(0, messageItemsMax);
    if (leaving.length > 0) {
      this.#stream.write({ items: leaving.map(({ item }) => item) }, () => {
        for (const { taken } of leaving) taken?.();
        this.#next();
      });
      return;
    }
    this.#busy = false;
    if (this.#ended) this.#stream.end();
  }
}
