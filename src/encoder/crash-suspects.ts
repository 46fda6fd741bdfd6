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

/** An encoder that was lost while it had documents. */
export interface Loss {
  readonly address: string;
  /** Whether another process is known to have taken its place; it may become so later. */
  readonly isReplaced: () => boolean;
}

/** The documents of one call. */
export class CrashSuspects {
  readonly #together: Loss[] = [];
  #alone: { readonly position: number; crashes: number } | undefined;

  /** Whether documents are to go one by one. */
  get alone(): boolean {
    return this.#together.filter((loss) => loss.isReplaced()).length >= crashesTogetherMax;
  }

  lostTogether(loss: Loss): void {
    this.#together.push(loss);
  }

  /** A process ended under this document alone; true when it is to blame. */
  endedAlone(position: number): boolean {
    if (this.#alone?.position !== position) this.#alone = { position, crashes: 0 };
    return ++this.#alone.crashes === crashesAloneMax;
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
