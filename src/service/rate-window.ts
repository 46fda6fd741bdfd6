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

export class RateWindow {
  #times = new Uint32Array(capacityMinimum);
  #first = 0;
  #count = 0;
  #newestMs = Number.NEGATIVE_INFINITY;

  get count(): number {
    return this.#count;
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
