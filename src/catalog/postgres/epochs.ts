/** The epoch of the catalog (`epochFunctions`), as this process has seen it last: statements that many depend on return it. */

export class Epochs {
  readonly #listeners: (() => void)[] = [];
  #last: string | undefined;

  /** Another than the last begins: what is kept of the catalog in memory may be of a history that is lost. */
  note(epoch: string): void {
    const isOther = this.#last !== undefined && this.#last !== epoch;
    this.#last = epoch;
    if (isOther) for (const onOther of this.#listeners) onOther();
  }

  watch(onOther: () => void): void {
    this.#listeners.push(onOther);
  }
}
