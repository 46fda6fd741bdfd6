/**
 * Slows down bodies that come in many small pieces. Each piece costs the event loop about a microsecond, whatever its size.
 * So 5 MiB in chunks of one byte cost seconds. All such bodies together may take a tenth of the event loop: they are read in
 * turn, with pauses. A body in ordinary pieces never waits.
 */
import { setTimeout as delay } from 'node:timers/promises';

/** A body may have a piece for each so many bytes, and `morePieces` beyond that. */
const ordinaryBytes = 512;
const morePieces = 256;
/** Ten times the cost of a piece. */
const msOfPiece = 0.01;

export interface PiecesOfBody {
  /** Counts a piece. The returned promise, if any, must resolve before more is read. */
  wait(bytes: number): Promise<void> | undefined;
}

export class SmallPieces {
  /** The end of all pauses so far, by `performance.now()`. */
  #freeAt = 0;

  ofBody(): PiecesOfBody {
    let owed = -morePieces;
    let isWaiting = false;
    const pay = async (): Promise<void> => {
      // By then all pieces of this read are counted.
      await new Promise(setImmediate);
      const now = performance.now();
      this.#freeAt = Math.max(now, this.#freeAt) + owed * msOfPiece;
      owed = 0;
      await delay(this.#freeAt - now);
      isWaiting = false;
    };
    return {
      wait: (bytes) => {
        owed = Math.max(-morePieces, owed + 1 - bytes / ordinaryBytes);
        if (isWaiting || owed <= 0) return undefined;
        isWaiting = true;
        return pay();
      },
    };
  }
}
