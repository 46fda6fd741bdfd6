/**
 * Gives suspects an encoder to themselves, one suspect at a time in the whole pool, so that nobody is blamed for another's
 * crash, and no one else's work is lost with it. Others wait meanwhile or go to another encoder.
 *
 * They do not wait long: a quarantine lapses after `lapseMs`, and the next one begins as long after this one as this
 * one lasted.
 */
import { setTimeout as pause } from 'node:timers/promises';

export class Quarantine<Place> {
  readonly #lapseMs: number;
  readonly #onEnd: () => void;
  readonly #turns = new Turns();
  #place: Place | undefined;
  #lastedMs = 0;

  constructor({ lapseMs, onEnd }: { readonly lapseMs: number; readonly onEnd: () => void }) {
    this.#lapseMs = lapseMs;
    this.#onEnd = onEnd;
  }

  /** What others keep away from. */
  get place(): Place | undefined {
    return this.#place;
  }

  /** Resolves when it is the caller's turn; rejects with the signal's reason. */
  async turn(signal: AbortSignal): Promise<QuarantineTurn<Place>> {
    const endTurn = await this.#turns.take(signal);
    let leave: (() => void) | undefined;
    return {
      letOthersGo: async () => pause(this.#lastedMs),
      enter: (place) => {
        const enteredAt = performance.now();
        this.#place = place;
        leave = (): void => {
          clearTimeout(timer);
          leave = undefined;
          this.#place = undefined;
          this.#lastedMs = performance.now() - enteredAt;
          this.#onEnd();
        };
        const timer = setTimeout(leave, this.#lapseMs);
      },
      end: () => {
        leave?.();
        endTurn();
      },
    };
  }
}

export interface QuarantineTurn<Place> {
  /** Waits for as long as the last quarantine lasted. */
  letOthersGo(): Promise<void>;
  /** From now on others keep away from the place, until the turn ends or the quarantine lapses. */
  enter(place: Place): void;
  /** To be called; the second time does nothing. */
  end(): void;
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
