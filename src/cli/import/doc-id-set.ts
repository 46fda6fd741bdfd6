/**
 * Remembers the identifiers of an input, as 64 bits of a hash of each. A Set of strings would take ten times the memory, and
 * holds at most 16 million. Among a hundred million identifiers, two share a hash once in some thousand imports. One of
 * them is then counted as repeated, with no other effect.
 */
import { hash } from 'node:crypto';

export class DocIdSet {
  /** Open addressing; 0 = free. */
  #slots = new BigUint64Array(1 << 12);
  #count = 0;

  /** Whether the set had the identifier before. */
  add(docId: string): boolean {
    const key = hash('sha1', docId, 'buffer').readBigUInt64LE() || 1n;
    if (!this.#put(key)) return true;
    this.#count += 1;
    if (this.#count * 2 > this.#slots.length) this.#grow();
    return false;
  }

  /** `false`: the set has the key. */
  #put(key: bigint): boolean {
    const mask = this.#slots.length - 1;
    let place = Number(key & 0xffff_ffffn) & mask;
    while (this.#slots[place] !== 0n) {
      if (this.#slots[place] === key) return false;
      place = (place + 1) & mask;
    }
    this.#slots[place] = key;
    return true;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new BigUint64Array(before.length * 2);
    for (const key of before) if (key !== 0n) this.#put(key);
  }
}
