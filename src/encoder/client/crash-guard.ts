/**
 * Finds the texts that end the encoder process that runs them (a fault in the runtime, memory used up), so that each of
 * them ends few processes and whatever else is asked for is answered.
 *
 * A text whose process ended is run again on the process that comes in its place: before that one takes anything else, and
 * with nothing beside it (`Retrial`). If two end in a row, nothing but the text can be at fault, and it is refused for a
 * while (`UnencodableTexts`). A text that cannot have the process to itself runs among others, and is not blamed.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { EncodeDocumentsOptions } from '../protocol/contract.ts';

/** How long others wait at most: the longest document takes as long on one slow core. */
const aloneMsMax = 4000;
/** Processes that end under a text alone, in a row, before it is to blame: one may have been killed. */
const endsMax = 2;
const textsMax = 10_000;

/** Lost calls take turns on a process that takes nothing else meanwhile. One for each encoder. */
export class Retrial {
  /** In the order of their turns. */
  readonly #calls = new Set<object>();
  /** Runs while others keep away from the process. */
  #timer: NodeJS.Timeout | undefined;

  get isOpen(): boolean {
    return this.#timer !== undefined;
  }

  hasTurn(call: object): boolean {
    return this.isOpen && this.#calls.values().next().value === call;
  }

  join(call: object): void {
    this.#calls.add(call);
  }

  /** Lets the other calls go first. */
  pass(call: object): void {
    if (this.#calls.delete(call)) this.#calls.add(call);
  }

  leave(call: object): void {
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.end();
  }

  /** A process came that has run nothing yet. Calls back when others may come at the latest. */
  begin(onEnd: () => void): void {
    this.end();
    if (this.#calls.size === 0) return;
    this.#timer = setTimeout(() => {
      this.end();
      onEnd();
    }, aloneMsMax).unref();
  }

  /** From now on the process may run something else. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** How a text was to be run, and for whom; queries have no chunking. */
type TextRun = Pick<EncodeDocumentsOptions, 'tenantId' | 'model'> &
  Partial<Pick<EncodeDocumentsOptions, 'chunking'>>;

/**
 * The texts under which processes ended that they had to themselves. They are kept under a digest with a key of this
 * process, so that the memory tells nothing of a text, and by tenant, so that nothing one tenant asks is answered from what
 * another did.
 */
export class UnencodableTexts {
  readonly #key = randomBytes(32);
  /** Processes that ended under each text. */
  readonly #ends: LRUCache<string, number>;

  constructor(keepMs: number) {
    this.#ends = new LRUCache({ max: textsMax, ttl: keepMs });
  }

  has(text: string, run: TextRun): boolean {
    // While all is well no digest is made.
    return this.#ends.size > 0 && (this.#ends.get(this.#digest(text, run)) ?? 0) >= endsMax;
  }

  /** A process ended under the text alone; whether it is unencodable. */
  noteEnd(text: string, run: TextRun): boolean {
    const digest = this.#digest(text, run);
    const ends = (this.#ends.get(digest) ?? 0) + 1;
    this.#ends.set(digest, ends);
    return ends >= endsMax;
  }

  clear(text: string, run: TextRun): void {
    if (this.#ends.size > 0) this.#ends.delete(this.#digest(text, run));
  }

  #digest(text: string, { tenantId, model, chunking }: TextRun): string {
    const run = JSON.stringify([tenantId, model.name, model.version, chunking]);
    return createHmac('sha256', this.#key).update(run).update(text).digest('base64');
  }
}
