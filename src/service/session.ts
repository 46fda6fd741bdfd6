/**
 * Sessions of the console, which a browser holds in place of an API key. A session is a text,
 *
 *     expiry, 6 bytes | key id, 12 characters | HMAC-SHA-256 of both and of the key's hash      in base64url
 *
 * under a secret that is derived from the key pepper (HKDF, RFC 5869). So every node can check every session, and none is
 * stored. A session ends when it expires, when its key is revoked, when its tenant is suspended, or when its owner signs out. The
 * catalog has the digests of sessions that were signed out.
 */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { isKeyId } from '../catalog/api-key.ts';
import type { EndedSession, KeyRecord } from '../catalog/contract.ts';

const idLength = 12;
const payloadBytes = 6 + idLength;
const macBytes = 32;
const sessionCharacters = Math.ceil(((payloadBytes + macBytes) * 4) / 3);
export const sessionMs = 12 * 3_600_000;

export class Sessions {
  readonly #secret: Uint8Array;

  /** `pepper`: 32 bytes. */
  constructor(pepper: Uint8Array) {
    this.#secret = new Uint8Array(hkdfSync('sha256', pepper, '', 'maxsimd console session', 32));
  }

  open({ key, hash }: KeyRecord, nowMs: number): string {
    const payload = Buffer.alloc(payloadBytes);
    payload.writeUIntBE(Math.floor(nowMs) + sessionMs, 0, 6);
    payload.write(key.id, 6, 'latin1');
    return Buffer.concat([payload, this.#mac(payload, hash)]).toString('base64url');
  }

  /** The id of the key that a session claims; `undefined` if it has expired or is no session. */
  keyIdOf(session: string, nowMs: number): string | undefined {
    if (session.length !== sessionCharacters) return undefined;
    const bytes = Buffer.from(session, 'base64url');
    if (bytes.length !== payloadBytes + macBytes || bytes.readUIntBE(0, 6) <= nowMs) return undefined;
    const keyId = bytes.toString('latin1', 6, payloadBytes);
    return isKeyId(keyId) ? keyId : undefined;
  }

  /** A digest of the bytes, not of the text: the last character of the text has spare bits, so several texts are one session. */
  digestOf(session: string): Buffer {
    return createHash('sha256').update(Buffer.from(session, 'base64url')).digest();
  }

  /** The record of a session that its owner ends, for the catalog. */
  ended(session: string, { key }: KeyRecord): EndedSession {
    const expiresAtMs = Buffer.from(session, 'base64url').readUIntBE(0, 6);
    return { digest: this.digestOf(session), keyId: key.id, expiresAtMs };
  }

  matches(session: string, { hash }: KeyRecord): boolean {
    const bytes = Buffer.from(session, 'base64url');
    return timingSafeEqual(bytes.subarray(payloadBytes), this.#mac(bytes.subarray(0, payloadBytes), hash));
  }

  #mac(payload: Uint8Array, hash: Uint8Array): Buffer {
    return createHmac('sha256', this.#secret).update(payload).update(hash).digest();
  }
}
