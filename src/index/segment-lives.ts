/**
 * Which version each record of one segment holds and when it was born and died: the JavaScript side of
 * what the engine keeps per record (24 bytes), needed to choose and to carry out compactions.
 */
import { assertInvariant } from '../errors.ts';

export interface VersionSpan {
  readonly record: number;
  readonly versionId: number;
  readonly born: number;
  /** 0 = alive. */
  readonly died: number;
}

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

  /** Version ids start at 1; 0 marks a record that no version refers to. */
  add(span: VersionSpan): void {
    assertInvariant(span.versionId > 0, 'version ids are positive');
    this.#reserve(span.record + 1);
    assertInvariant(this.#versionIds[span.record] === 0, 'a record holds one version for ever');
    this.#versionIds[span.record] = span.versionId;
    this.#born[span.record] = span.born;
    this.#died[span.record] = span.died;
    if (span.died === 0) this.#live += 1;
  }

  die(record: number, generation: number, nowMs: number): void {
    assertInvariant(record < this.#records && this.#versionIds[record] !== 0, 'the dying record is known');
    assertInvariant(this.#died[record] === 0, 'a version dies once');
    this.#died[record] = generation;
    this.#live -= 1;
    this.markWaste(nowMs);
  }

  /** Versions that a reader at `generation` or later may still see, in record order. */
  seenSince(generation: number): VersionSpan[] {
    const spans: VersionSpan[] = [];
    for (let record = 0; record < this.#records; record += 1) {
      const versionId = this.#versionIds[record] ?? 0;
      const died = this.#died[record] ?? 0;
      if (versionId === 0 || (died !== 0 && died <= generation)) continue;
      spans.push({ record, versionId, born: this.#born[record] ?? 0, died });
    }
    return spans;
  }

  #reserve(records: number): void {
    this.#records = Math.max(this.#records, records);
    if (records <= this.#versionIds.length) return;
    const capacity = Math.max(records, this.#versionIds.length * 2);
    this.#versionIds = grown(this.#versionIds, capacity);
    this.#born = grown(this.#born, capacity);
    this.#died = grown(this.#died, capacity);
  }
}

function grown(column: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(capacity);
  larger.set(column);
  return larger;
}
