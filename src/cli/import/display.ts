/** Shows the progress of an import: the settled share of the input, the counts, and the reason for a wait. The first batch may take minutes. */
import type { OnWait } from '../client.ts';
import { startProgress, type Progress } from '../progress.ts';
import type { ImportPosition } from './checkpoint.ts';

export class ImportDisplay {
  readonly #progress: Progress;
  #bytesRead = 0;
  #counts = '0 done, 0 failed';
  #taken = 0;
  #settled = 0;
  #waiting = '';

  constructor(stderr: NodeJS.WriteStream, inputBytes: number) {
    this.#progress = startProgress(stderr, inputBytes);
  }

  settled(position: ImportPosition, bytesRead: number): void {
    this.#bytesRead = bytesRead;
    this.#counts = `${position.done} done, ${position.failed} failed`;
    this.#settled = position.documents;
    this.#waiting = '';
    this.#show();
  }

  /** `documents`: those that were read and sent, or soon will be. */
  taken(documents: number): void {
    this.#taken = documents;
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
    const underWay = this.#taken > this.#settled ? `, ${this.#taken - this.#settled} under way` : '';
    this.#progress.update(this.#bytesRead, `${this.#counts}${underWay}${this.#waiting}`);
  }
}
