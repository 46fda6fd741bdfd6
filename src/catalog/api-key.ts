/**
 * API keys. The text, 59 characters, is
 *
 *     qkv_live_ | key id, 12 | secret, 32 | checksum, 6
 *
 * in base 62 (a key is one word for a double click and survives every shell). The secret carries
 * 32 x log2(62) = 190.5 random bits. The checksum is the CRC-32 of everything before it: a mistyped key
 * is distinguished without a look-up, and secret scanners find few false positives (the idea is GitHub's,
 * github.blog "Behind GitHub's new authentication token formats"). The catalog finds a key by its id and
 * stores an HMAC-SHA-256 of the whole text under a pepper that lies outside the database
 * (`key-pepper.ts`): the secret is random, so a slow password hash would add nothing but latency.
 *
 * Keys appear in no log and no error: nothing here puts one into a message.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const apiKeyPrefix = 'qkv_live_';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const idLength = 12;
const secretLength = 32;
const checksumLength = 6;
const pattern = new RegExp(
  `^${apiKeyPrefix}([0-9A-Za-z]{${idLength}})[0-9A-Za-z]{${secretLength + checksumLength}}$`,
);

export interface GeneratedApiKey {
  /** Not secret: how the key is listed and revoked. */
  readonly id: string;
  /** The whole key, for its owner, once. */
  readonly apiKey: string;
}

export function generateApiKey(): GeneratedApiKey {
  const id = randomText(idLength);
  const body = apiKeyPrefix + id + randomText(secretLength);
  return { id, apiKey: body + checksum(body) };
}

const idPattern = new RegExp(`^[0-9A-Za-z]{${idLength}}$`);

/** Whether a key may have this id: a catalog is asked for no other. */
export function isKeyId(text: string): boolean {
  return idPattern.test(text);
}

/** The id of a well-formed key; `undefined` for anything else, a key with a typing error among it. */
export function parseApiKey(text: string): { readonly id: string } | undefined {
  const id = pattern.exec(text)?.[1];
  if (id === undefined) return undefined;
  const body = text.slice(0, -checksumLength);
  return text.slice(-checksumLength) === checksum(body) ? { id } : undefined;
}

/** 32 bytes. `pepper`: 32 bytes. */
export function hashApiKey(apiKey: string, pepper: Uint8Array): Uint8Array {
  return createHmac('sha256', pepper).update(apiKey, 'utf8').digest();
}

/** In time that depends on neither key nor hash. */
export function apiKeyMatches(apiKey: string, pepper: Uint8Array, hash: Uint8Array): boolean {
  const expected = hashApiKey(apiKey, pepper);
  return expected.length === hash.length && timingSafeEqual(expected, hash);
}

function randomText(length: number): string {
  // Bytes from the last, incomplete run of the alphabet are drawn again: every character is equally likely.
  const limit = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < limit && text.length < length) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let place = 0; place < checksumLength; place++) {
    text = alphabet[rest % alphabet.length] + text;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}
