/**
 * The log of one tenant's admissions in the last 60 s: a ring of times, four bytes each, as large as the
 * use of the window needs. A log and not a counter, because only the log knows exactly when the next
 * request fits, and never lets two windows' worth through at a boundary.
 *
 * The ring holds whole milliseconds modulo 2^32. Differences are exact: when the newest admission is a
 * window old all are forgotten, so that no two times that meet are two windows apart.
 */

export const windowMs = 60_000;

const capacityMinimum = 8;
/** Groups of admissions in a packed window. */
const groupsMax = 60;
const packedHeadBytes = 12;
/** Far more than any limit: what says that it holds more is no window. */
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
   * The window in at most 252 bytes: the time of the newest admission (double), how many there are, and how much older
   * each is (32 bits each, little-endian). Beyond 60 they come in groups of equal size that are as young as their
   * youngest, so that no admission leaves a window that was packed before its time.
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
   * What is left at `nowMs` of windows that were packed of one tenant, in any order. Each admission is as young as in any of
   * them: which was packed last is not known where the clock was wrong for a while.
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

  /** After `expire`; `timeMs` is not before the last one added. */
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

  /** Signed: a time that was rounded up may lie a millisecond ahead of `nowMs`. */
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

/** When the admissions were, the youngest first. Those of a clock that was ahead are moved to now together. */
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
