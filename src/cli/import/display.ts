/** Shows the progress of an import: the settled share of the input, the counts, and the reason for a wait. */
import type { OnWait } from '../client.ts';
import { startProgress, type Progress } from '../progress.ts';
import type { ImportPosition } from './checkpoint.ts';

export class ImportDisplay {
  readonly #progress: Progress;
  #bytesRead = 0;
  #counts = '0 done, 0 failed';
  #waiting = '';

  constructor(stderr: NodeJS.WriteStream, inputBytes: number) {
    this.#progress = startProgress(stderr, inputBytes);
  }

  settled(position: ImportPosition, bytesRead: number): void {
    this.#bytesRead = bytesRead;
    this.#counts = `${position.done} done, ${position.failed} failed`;
    this.#waiting = '';
    this.#show();
  }

  say(line: string): void {
    this.#progress.say(line);
  }

  readonly waiting: OnWait = (error, delayMs) => {
    this.#waiting = `, waiting ${Math.ceil(delayMs / 1000)} s: ${error.message}`;
    this.#show();
  };

  stop(): void {
    this.#progress.stop();
  }

  #show(): void {
    this.#progress.update(this.#bytesRead, `${this.#counts}${this.#waiting}`);
  }
}
