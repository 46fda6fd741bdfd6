/**
 * Writes items to a stream whose messages hold several items. Items that come at the same time, or while a write is under way,
 * leave in one message. For a short query a message costs either end as much as all its other work.
 */
interface ItemStream<Item> {
  write(message: { items: Item[] }, taken: () => void): unknown;
  end(): unknown;
}

/** So many of the largest queries or answers fit into a message (`messageBytesMax`). */
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
