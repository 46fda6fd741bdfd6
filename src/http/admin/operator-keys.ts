/**
 * The keys of operators, one in each line of a file, so that an old and a new key can be valid together. They are kept as
 * digests and compared in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto';

/** A shorter text can be guessed, or is no key. */
const charactersMin = 32;

export class OperatorKeys {
  readonly #digests: readonly Buffer[];

  /** Throws an error that says what is wrong, and quotes nothing. */
  constructor(text: string) {
    const keys = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (keys.length === 0) throw new Error('the file holds no key');
    const at = keys.findIndex((key) => !/^[\x21-\x7e]+$/.test(key) || key.length < charactersMin);
    if (at >= 0) {
      throw new Error(
        `key ${at + 1} must have at least ${charactersMin} visible ASCII characters, without spaces`,
      );
    }
    this.#digests = keys.map(digestOf);
  }

  /** The operator's name for the audit log; `undefined` if this is no operator's key. */
  identify(authorization: string | undefined): string | undefined {
    const given = digestOf(keyIn(authorization));
    // Compares all, so that the time does not depend on which one matches.
    const matches = this.#digests.filter((digest) => timingSafeEqual(digest, given));
    return matches.length === 0 ? undefined : `operator:${shortened(given)}`;
  }
}

/** The digest of a refused key. A shorter text has none: it may be a password, which could be found from its digest. */
export function refusedKeyDigest(authorization: string | undefined): string | undefined {
  const key = keyIn(authorization);
  return key.length < charactersMin ? undefined : shortened(digestOf(key));
}

function keyIn(authorization: string | undefined): string {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? '';
}

/** Enough to distinguish keys: the first characters that `printf %s KEY | sha256sum` prints. */
function shortened(digest: Buffer): string {
  return digest.toString('hex').slice(0, 16);
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
