/** What is seen while an import runs: the share of the input that is settled, counts, and what is being waited for. */
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
    this.#waiting = `, waiting ${Math.ceil(delayMs / 1000)} s: ${error.code}`;
    this.#show();
  };

  stop(): void {
    this.#progress.stop();
  }

  #show(): void {
    this.#progress.update(this.#bytesRead, `${this.#counts}${this.#waiting}`);
  }
}
