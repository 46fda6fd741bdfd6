/**
 * The keys of operators: a file with one in each line, so that two hold while one takes the place of the other. They are
 * kept as digests and compared in time that depends on neither side.
 */
import { createHash, timingSafeEqual } from 'node:crypto';

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

  /** The name of the operator whose key it is, for the audit log; `undefined`: it is none. */
  identify(authorization: string | undefined): string | undefined {
    const given = digestOf(keyIn(authorization));
    // All of them, whichever it is.
    const matches = this.#digests.filter((digest) => timingSafeEqual(digest, given));
    return matches.length === 0 ? undefined : `operator:${shortened(given)}`;
  }
}

/** What tells a refused key apart. What is shorter than a key may be a password, which a digest gives away. */
export function refusedKeyDigest(authorization: string | undefined): string | undefined {
  const key = keyIn(authorization);
  return key.length < charactersMin ? undefined : shortened(digestOf(key));
}

function keyIn(authorization: string | undefined): string {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? '';
}

/** Enough to tell keys apart: the first characters of what `printf %s KEY | sha256sum` prints. */
function shortened(digest: Buffer): string {
  return digest.toString('hex').slice(0, 16);
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
