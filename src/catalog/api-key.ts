/**
 * API keys. The text of a key has 59 characters:
 *
 *     qkv_live_ | key id, 12 | secret, 32 | checksum, 6
 *
 * It is in base 62, so that a double click selects it and every shell takes it as one word. The secret carries
 * 32 x log2(62) = 190.5 random bits. The checksum is the CRC-32 of everything before it. With it a mistyped key is refused
 * without a look-up, and secret scanners find few false positives (the idea is GitHub's, github.blog "Behind GitHub's new
 * authentication token formats").
 *
 * The catalog finds a key by its id. It stores an HMAC-SHA-256 of the whole text under a pepper that lies outside the database
 * (`key-pepper.ts`). The secret is random, so a slow password hash would add nothing but latency.
 *
 * Keys appear in no log and no error: no message here holds one.
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
  /** Not secret. Keys are listed and revoked by it. */
  readonly id: string;
  /** The whole key. Its owner sees it once. */
  readonly apiKey: string;
}

export function generateApiKey(): GeneratedApiKey {
  const id = randomText(idLength);
  const body = apiKeyPrefix + id + randomText(secretLength);
  return { id, apiKey: body + checksum(body) };
}

const idPattern = new RegExp(`^[0-9A-Za-z]{${idLength}}$`);

/** Whether a key may have this id. The catalog is asked for no other ids. */
export function isKeyId(text: string): boolean {
  return idPattern.test(text);
}

/** The id of a well-formed key; `undefined` for anything else, for example a mistyped key. */
export function parseApiKey(text: string): { readonly id: string } | undefined {
  const id = pattern.exec(text)?.[1];
  if (id === undefined) return undefined;
  const body = text.slice(0, -checksumLength);
  return text.slice(-checksumLength) === checksum(body) ? { id } : undefined;
}

/** Returns 32 bytes. `pepper` has 32 bytes. */
export function hashApiKey(apiKey: string, pepper: Uint8Array): Uint8Array {
  return createHmac('sha256', pepper).update(apiKey, 'utf8').digest();
}

/** Takes the same time whatever the key and the hash are. */
export function apiKeyMatches(apiKey: string, pepper: Uint8Array, hash: Uint8Array): boolean {
  const expected = hashApiKey(apiKey, pepper);
  return expected.length === hash.length && timingSafeEqual(expected, hash);
}

function randomText(length: number): string {
  // Larger bytes would make some characters more likely than others, so they are drawn again.
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
