/**
 * Finds the text that ends the encoder process that runs it (a fault in the runtime, memory used up), so that it is
 * refused, and the other documents of its request are encoded.
 *
 * Documents go together until two processes have ended under them. From then on each goes alone, one suspect at a time
 * in the whole pool, so that nobody is blamed for another's crash; one that ends two processes alone is the culprit.
 * A query goes with whatever else its encoder has, and alone in the same way. Where it happened to be the only call that
 * this pool had there, it was alone already.
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
    return replaced(this.#together) >= crashesTogetherMax;
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

/** The text of one query. */
export class SuspectQuery {
  readonly #together: Loss[] = [];
  readonly #alone: Loss[] = [];

  /** Whether it is to go alone. */
  get alone(): boolean {
    return replaced(this.#together) >= crashesTogetherMax || this.#alone.length > 0;
  }

  lost(loss: Loss, wasAlone: boolean): void {
    (wasAlone ? this.#alone : this.#together).push(loss);
  }

  /** What may be its fault, enough for a verdict once it is known which processes ended; else empty. */
  get accusations(): readonly Loss[] {
    return this.#alone.length < crashesAloneMax ? [] : this.#alone;
  }

  get guilty(): boolean {
    return replaced(this.#alone) >= crashesAloneMax;
  }
}

function replaced(losses: readonly Loss[]): number {
  return losses.filter((loss) => loss.isReplaced()).length;
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
