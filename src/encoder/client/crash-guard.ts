/**
 * Finds texts that end the encoder process that runs them (a fault in the runtime, memory used up). So each of them ends few
 * processes, and other requests are answered.
 *
 * A text whose process ended is run again on the next process, before any other text and with nothing beside it (`Retrial`). If
 * two processes end in a row that run the text alone, the text is refused for a while (`UnencodableTexts`). A text that cannot
 * have a process to itself runs among others, and then it is not blamed.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { EncodeDocumentsOptions } from '../protocol/contract.ts';

/** The longest time that other calls wait for texts that run alone: that of the longest document on one slow core. */
const aloneMsMax = 4000;
/** A text is blamed when so many processes in a row ended while they ran it alone. One may have been killed by somebody else. */
const endsMax = 2;
const textsMax = 10_000;

/** Calls that lost their process take turns on the next one, which takes nothing else meanwhile. Each encoder has one. */
export class Retrial {
  /** In the order of their turns. */
  readonly #calls = new Set<object>();
  /** Set while other calls keep away from the process. */
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

  /** Puts the call behind the others. */
  pass(call: object): void {
    if (this.#calls.delete(call)) this.#calls.add(call);
  }

  leave(call: object): void {
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.end();
  }

  /** A new process has come that has run nothing yet. Calls `onEnd` if the turns take too long. */
  begin(onEnd: () => void): void {
    this.end();
    if (this.#calls.size === 0) return;
    this.#timer = setTimeout(() => {
      this.end();
      onEnd();
    }, aloneMsMax).unref();
  }

  /** From now on the process takes other calls. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** The tenant and the parameters of a text. Queries have no chunking. */
type TextRun = Pick<EncodeDocumentsOptions, 'tenantId' | 'model'> &
  Partial<Pick<EncodeDocumentsOptions, 'chunking'>>;

/**
 * Texts that ended processes that ran them alone. They are kept as digests with a random key, so that memory reveals no text.
 * The digest includes the tenant, so that no tenant learns from an answer what another one sent.
 */
export class UnencodableTexts {
  readonly #key = randomBytes(32);
  /** Digest of a text -> processes that it ended. */
  readonly #ends: LRUCache<string, number>;

  constructor(keepMs: number) {
    this.#ends = new LRUCache({ max: textsMax, ttl: keepMs });
  }

  has(text: string, run: TextRun): boolean {
    // While no process has ended, no digest is computed.
    return this.#ends.size > 0 && (this.#ends.get(this.#digest(text, run)) ?? 0) >= endsMax;
  }

  /** Notes that a process ended while it ran the text alone. Returns whether the text counts as unencodable. */
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
