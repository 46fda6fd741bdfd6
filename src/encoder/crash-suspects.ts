/**
 * Finds the document that ends the encoder process that runs it (a fault in the runtime, memory used up), so that the
 * others of its request are encoded and it is refused.
 *
 * Documents go together until two processes have ended under them. From then on each goes alone, one suspect at a time
 * in the whole pool, so that nobody is blamed for another's crash; one that ends two processes alone is the culprit.
 * Only a process that was replaced counts: connections that break and encoders that hang are nobody's fault.
 */

/** Processes that end under several documents, and under one alone, before that counts. */
const crashesTogetherMax = 2;
const crashesAloneMax = 2;

/** The documents of one call. */
export class CrashSuspects {
  #together = 0;
  #alone: { readonly position: number; crashes: number } | undefined;

  /** Whether documents are sent one by one. */
  get alone(): boolean {
    return this.#together >= crashesTogetherMax;
  }

  /** Of the documents left, those to send next. */
  next(left: readonly number[]): readonly number[] {
    return this.alone ? left.slice(0, 1) : left;
  }

  /** A process ended under these documents; gives back the one that is to blame, if it is known. */
  count(positions: readonly number[]): number | undefined {
    if (!this.alone) {
      this.#together++;
      return undefined;
    }
    const position = positions[0]!;
    if (this.#alone?.position !== position) this.#alone = { position, crashes: 0 };
    return ++this.#alone.crashes === crashesAloneMax ? position : undefined;
  }
}

/** Lets one after another, in the order they came. */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves with the end of the turn, to be called once; rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<() => void> {
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    this.#last = turn.promise;
    const gone = Promise.withResolvers<never>();
    const leave = (): void => gone.reject(signal.reason as Error);
    signal.addEventListener('abort', leave, { once: true });
    try {
      signal.throwIfAborted();
      await Promise.race([before, gone.promise]);
    } catch (error) {
      // Those behind wait for those in front all the same.
      void before.then(turn.resolve);
      throw error;
    } finally {
      signal.removeEventListener('abort', leave);
    }
    return turn.resolve;
  }
}
