/** The epoch of the catalog (`epochFunctions`) that this process has seen last. Frequent statements return it. */
export class Epochs {
  readonly #listeners: (() => void)[] = [];
  #last: string | undefined;

  /** Calls the listeners when the epoch is not the last one: what memory holds of the catalog may be lost there. */
  note(epoch: string): void {
    const isOther = this.#last !== undefined && this.#last !== epoch;
    this.#last = epoch;
    if (isOther) for (const onOther of this.#listeners) onOther();
  }

  watch(onOther: () => void): void {
    this.#listeners.push(onOther);
  }
}
