/**
 * Which version each record of one segment holds and when it was born and died: the JavaScript side of
 * what the engine keeps per record (24 bytes), needed to choose and to carry out merges.
 */
import { assertInvariant } from '../errors.ts';

const recordsInitial = 64;

export class SegmentLives {
  #versionIds = new Float64Array(recordsInitial);
  #born = new Float64Array(recordsInitial);
  #died = new Float64Array(recordsInitial);
  #records = 0;
  #live = 0;
  #wasteSinceMs: number | undefined;

  /** Records alive now. */
  get live(): number {
    return this.#live;
  }

  /** When the oldest bytes that no live version needs came to be; `undefined` while there are none. */
  get wasteSinceMs(): number | undefined {
    return this.#wasteSinceMs;
  }

  /** Notes bytes that are of no use: a death, or records of an upsert that never committed. */
  markWaste(nowMs: number): void {
    this.#wasteSinceMs ??= nowMs;
  }

  /** Room for records below a number that is known beforehand. */
  reserve(records: number): void {
    if (records <= this.#versionIds.length) return;
    const capacity = Math.max(records, this.#versionIds.length * 2);
    this.#versionIds = grown(this.#versionIds, capacity);
    this.#born = grown(this.#born, capacity);
    this.#died = grown(this.#died, capacity);
  }

  /** Version ids start at 1; 0 marks a record that no version refers to. */
  add(record: number, versionId: number, born: number, died: number): void {
    assertInvariant(versionId > 0, 'version ids are positive');
    this.reserve(record + 1);
    assertInvariant(this.#versionIds[record] === 0, 'a record holds one version for ever');
    this.#records = Math.max(this.#records, record + 1);
    this.#versionIds[record] = versionId;
    this.#born[record] = born;
    this.#died[record] = died;
    if (died === 0) this.#live += 1;
  }

  die(record: number, generation: number, nowMs: number): void {
    assertInvariant(record < this.#records && this.#versionIds[record] !== 0, 'the dying record is known');
    assertInvariant(this.#died[record] === 0, 'a version dies once');
    this.#died[record] = generation;
    this.#live -= 1;
    this.markWaste(nowMs);
  }

  /** Whether a reader at `generation` or later may still see a record. */
  isSeenSince(record: number, generation: number): boolean {
    if (record >= this.#records || this.#versionIds[record] === 0) return false;
    const died = this.#died[record] ?? 0;
    return died === 0 || died > generation;
  }

  countSeenSince(generation: number): number {
    let count = 0;
    for (let record = 0; record < this.#records; record += 1) {
      if (this.isSeenSince(record, generation)) count += 1;
    }
    return count;
  }

  /** Records that a reader at `generation` or later may still see, ascending. */
  recordsSeenSince(generation: number): Uint32Array {
    const seen = new Uint32Array(this.countSeenSince(generation));
    let count = 0;
    for (let record = 0; record < this.#records; record += 1) {
      if (this.isSeenSince(record, generation)) seen[count++] = record;
    }
    return seen;
  }

  /** 0 = none. */
  versionId(record: number): number {
    return this.#versionIds[record] ?? 0;
  }

  born(record: number): number {
    return this.#born[record] ?? 0;
  }

  /** 0 = alive. */
  died(record: number): number {
    return this.#died[record] ?? 0;
  }
}

function grown(column: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(capacity);
  larger.set(column);
  return larger;
}
