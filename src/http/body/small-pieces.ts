/**
 * Slows down bodies that come in many small pieces. Each piece costs the event loop about a microsecond, whatever it
 * holds, so 5 MiB in chunks of one byte cost seconds. All such bodies together may take a tenth of the event loop: they
 * are read in turn, with pauses between. A body in ordinary pieces never waits.
 */
import { setTimeout as delay } from 'node:timers/promises';

/** A body may have one piece for so many bytes, and some more. */
const ordinaryBytes = 512;
const morePieces = 256;
/** Ten times what a piece costs. */
const msOfPiece = 0.01;

export interface PiecesOfBody {
  /** Counts a piece. What is returned, if anything, is to be waited for before more is read. */
  wait(bytes: number): Promise<void> | undefined;
}

export class SmallPieces {
  /** When the pauses of all bodies so far are over, by `performance.now()`. */
  #freeAt = 0;

  ofBody(): PiecesOfBody {
    let owed = -morePieces;
    let isWaiting = false;
    const pay = async (): Promise<void> => {
      // Then all pieces of this read are counted.
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
