/**
 * The keys of operators: a file with one in each line, so that two hold while one takes the place of the other. They are
 * kept as digests and compared in time that depends on neither side.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../../errors.ts';

/** Fewer characters are guessed, or no key at all. */
const charactersMin = 32;

export class OperatorKeys {
  readonly #digests: readonly Buffer[];

  /** Throws what is wrong with the text, without a word of it. */
  constructor(text: string) {
    const keys = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (keys.length === 0) throw new Error('there is no key in it');
    const at = keys.findIndex((key) => !/^[\x21-\x7e]+$/.test(key) || key.length < charactersMin);
    if (at >= 0) {
      throw new Error(
        `key ${at + 1} must have at least ${charactersMin} visible ASCII characters, without spaces`,
      );
    }
    this.#digests = keys.map(digestOf);
  }

  /** Throws `authentication_failed`. */
  admit(authorization: string | undefined): void {
    const given = digestOf(/^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? '');
    // All of them, whichever it is.
    const matches = this.#digests.filter((digest) => timingSafeEqual(digest, given));
    if (matches.length === 0) {
      throw new ServiceError('authentication_failed', 'the key of an operator is missing or wrong');
    }
  }
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
