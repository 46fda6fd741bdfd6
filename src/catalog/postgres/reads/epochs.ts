import { assertInvariant } from '../../../errors.ts';

/** The epoch of the catalog (`epochFunctions`) that this process has seen last. Frequent statements return it. */
export class Epochs {
  readonly #listeners: (() => void)[] = [];
  #last: string | undefined;

  /** Calls the listeners when the epoch is not the last one: what memory holds of the catalog may be lost there. */
  note(epoch: unknown): void {
    assertEpoch(epoch);
    const isOther = this.#last !== undefined && this.#last !== epoch;
    this.#last = epoch;
    if (isOther) for (const onOther of this.#listeners) onOther();
  }

  watch(onOther: () => void): void {
    this.#listeners.push(onOther);
  }
}

/** Without its row a catalog has no epoch, and nothing that is compared with it would be seen to differ. */
export function assertEpoch(epoch: unknown): asserts epoch is string {
  assertInvariant(typeof epoch === 'string', 'the catalog has no epoch');
}
