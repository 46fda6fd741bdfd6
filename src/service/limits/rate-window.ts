/**
 * The log of one tenant's admissions in the last 60 s: a ring of times, four bytes each, which grows and shrinks with its
 * use. Unlike a counter, a log knows exactly when the next request fits, and never admits two windows' worth at a boundary.
 *
 * The ring holds whole milliseconds modulo 2^32. Differences are exact, because all admissions are forgotten when the newest
 * one is a window old.
 */

export const windowMs = 60_000;

const capacityMinimum = 8;
/** A packed window holds at most this many groups of admissions. */
const groupsMax = 60;
const packedHeadBytes = 12;
/** Far more than any limit. Bytes that claim more admissions are no window. */
const packedCountMax = 1 << 24;

export class RateWindow {
  #times = new Uint32Array(capacityMinimum);
  #first = 0;
  #count = 0;
  #newestMs = Number.NEGATIVE_INFINITY;

  get count(): number {
    return this.#count;
  }

  get newestMs(): number {
    return this.#newestMs;
  }

  /**
   * Packs the window into at most 252 bytes: the time of the newest admission (double), the number of admissions, and how much
   * older each is (32 bits each, little-endian). More than 60 admissions are packed in groups of equal size. A group has the age
   * of its youngest admission, so that no admission leaves a packed window too early.
   */
  pack(): Uint8Array {
    const size = groupSize(this.#count);
    const groups = Math.ceil(this.#count / size);
    const packed = new DataView(new ArrayBuffer(packedHeadBytes + 4 * groups));
    packed.setFloat64(0, this.#newestMs, true);
    packed.setUint32(8, this.#count, true);
    for (let group = 0; group < groups; group++) {
      const youngest = Math.min((group + 1) * size, this.#count) - 1;
      packed.setUint32(packedHeadBytes + 4 * group, this.#age(youngest, this.#newestMs), true);
    }
    return new Uint8Array(packed.buffer);
  }

  /**
   * Unpacks windows of one tenant, in any order, and drops what has expired at `nowMs`. Each admission is as young as in any of
   * the windows, because nobody knows which was packed last when the clock was wrong for a while.
   */
  static unpack(packed: readonly Uint8Array[], nowMs: number): RateWindow {
    const youngest: number[] = [];
    for (const times of packed.map((bytes) => unpackedTimes(bytes, nowMs))) {
      for (const [place, time] of times.entries()) youngest[place] = Math.max(youngest[place] ?? time, time);
    }
    const window = new RateWindow();
    for (const time of youngest.toReversed()) window.add(time);
    return window;
  }

  /** Forgets admissions at or before `nowMs` - 60 s. */
  expire(nowMs: number): void {
    if (nowMs - this.#newestMs >= windowMs) this.#count = 0;
    while (this.#count > 0 && this.#age(0, nowMs) >= windowMs) {
      this.#first = (this.#first + 1) % this.#times.length;
      this.#count--;
    }
    const capacity = this.#times.length;
    if (capacity > capacityMinimum && this.#count <= capacity / 8) this.#resize(capacity / 4);
  }

  /** Call `expire` first. `timeMs` is not before the last one added. */
  add(timeMs: number): void {
    if (this.#count === this.#times.length) this.#resize(this.#count * 2);
    this.#times[(this.#first + this.#count) % this.#times.length] = timeMs;
    this.#count++;
    this.#newestMs = timeMs;
  }

  /** Milliseconds until the n-th oldest admission (from 0) leaves the window. */
  msUntilExpired(place: number, nowMs: number): number {
    return windowMs - this.#age(place, nowMs);
  }

  /** Signed, because a time that was rounded up may lie a millisecond after `nowMs`. */
  #age(place: number, nowMs: number): number {
    return (nowMs - this.#at(place)) | 0;
  }

  #at(place: number): number {
    return this.#times[(this.#first + place) % this.#times.length] ?? 0;
  }

  #resize(capacity: number): void {
    const times = new Uint32Array(Math.max(capacity, capacityMinimum));
    for (let place = 0; place < this.#count; place++) times[place] = this.#at(place);
    this.#times = times;
    this.#first = 0;
  }
}

/** The times of the admissions, the youngest first. If the clock was ahead, all are moved back, and the youngest is now. */
function unpackedTimes(bytes: Uint8Array, nowMs: number): readonly number[] {
  const packed = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < packedHeadBytes) return [];
  const newestMs = packed.getFloat64(0, true);
  const count = packed.getUint32(8, true);
  const size = groupSize(count);
  const isWhole = bytes.length === packedHeadBytes + 4 * Math.ceil(count / size) && count <= packedCountMax;
  if (!isWhole || !(nowMs - newestMs < windowMs)) return [];
  const from = Math.min(newestMs, nowMs);
  const times: number[] = [];
  for (let place = count - 1; place >= 0; place -= 1) {
    const age = packed.getUint32(packedHeadBytes + 4 * Math.floor(place / size), true);
    if (nowMs - (from - age) >= windowMs) break;
    times.push(from - age);
  }
  return times;
}

function groupSize(count: number): number {
  return Math.max(1, Math.ceil(count / groupsMax));
}
