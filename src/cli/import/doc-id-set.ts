/**
 * Remembers the identifiers of an input, as 64 bits of a hash of each. A Set of strings would take ten times the memory, and
 * holds at most 16 million. Among a hundred million identifiers, two share a hash once in some thousand imports. One of
 * them then seems to be in the set.
 */
import { hash } from 'node:crypto';

export class DocIdSet {
  /** Open addressing; 0 = free. */
  #slots = new BigUint64Array(1 << 12);
  #count = 0;

  has(docId: string): boolean {
    return this.#slots[this.#placeOf(keyOf(docId))] !== 0n;
  }

  /** Whether the set had the identifier before. */
  add(docId: string): boolean {
    if (!this.#put(keyOf(docId))) return true;
    this.#count += 1;
    if (this.#count * 2 > this.#slots.length) this.#grow();
    return false;
  }

  /** `false`: the set has the key. */
  #put(key: bigint): boolean {
    const place = this.#placeOf(key);
    if (this.#slots[place] === key) return false;
    this.#slots[place] = key;
    return true;
  }

  /** Where the key is, or would be. */
  #placeOf(key: bigint): number {
    const mask = this.#slots.length - 1;
    let place = Number(key & 0xffff_ffffn) & mask;
    while (this.#slots[place] !== 0n && this.#slots[place] !== key) place = (place + 1) & mask;
    return place;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new BigUint64Array(before.length * 2);
    for (const key of before) if (key !== 0n) this.#put(key);
  }
}

function keyOf(docId: string): bigint {
  return hash('sha1', docId, 'buffer').readBigUInt64LE() || 1n;
}
