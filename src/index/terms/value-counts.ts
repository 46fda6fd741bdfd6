/**
 * Counts the values of one metadata field. Values are equal as they are for filters (`canonical-json.ts`). An array counts each
 * of its values once for a document. A document without the field counts nothing.
 */
import { setImmediate } from 'node:timers/promises';
import { canonicalItems, canonicalNumber } from './canonical-json.ts';

export interface ValueCount {
  /** As JSON. */
  readonly value: string;
  readonly count: number;
}

/** After so many values other work of the thread has its turn. */
const valuesInTurn = 5_000;

export class ValueCounts {
  /** By their canonical form. */
  readonly #counts = new Map<string, number>();

  get distinct(): number {
    return this.#counts.size;
  }

  /** Counts the value that a document has, in canonical form. Returns the characters of the values that are new. */
  add(value: string): number {
    const values = value.startsWith('[') ? new Set(canonicalItems(value)) : [value];
    let added = 0;
    for (const one of values) {
      const count = this.#counts.get(one);
      // A part of a text keeps the whole text in memory, so a new value is copied.
      this.#counts.set(count === undefined ? copyOf(one) : one, (count ?? 0) + 1);
      if (count === undefined) added += one.length;
    }
    return added;
  }

  /** The most frequent values: by count, then numbers in order before strings in order before other values. */
  async mostFrequent(limit: number): Promise<readonly ValueCount[]> {
    const best: Ranked[] = [];
    let seen = 0;
    for (const [value, count] of this.#counts) {
      seen += 1;
      if (seen % valuesInTurn === 0) await setImmediate();
      const ranked = new Ranked(value, count);
      const last = best.at(-1);
      if (best.length === limit && last !== undefined && last.compare(ranked) < 0) continue;
      const place = best.findLastIndex((other) => other.compare(ranked) < 0) + 1;
      best.splice(place, 0, ranked);
      best.length = Math.min(best.length, limit);
    }
    return best.map(({ value, count }) => ({ value: plain(value), count }));
  }
}

const kinds = { number: 0, string: 1, other: 2 } as const;

class Ranked {
  readonly value: string;
  readonly count: number;
  #text: Buffer | undefined;

  constructor(value: string, count: number) {
    this.value = value;
    this.count = count;
  }

  compare(other: Ranked): number {
    if (this.count !== other.count) return other.count - this.count;
    const kind = kindOf(this.value);
    if (kind !== kindOf(other.value)) return kind - kindOf(other.value);
    // Numbers that are equal as doubles go by their digits.
    const [one, two] = [Number(this.value), Number(other.value)];
    if (kind === kinds.number && one !== two) return one - two;
    return Buffer.compare(this.#bytes(), other.#bytes());
  }

  /** The order of UTF-8 is that of code points. */
  #bytes(): Buffer {
    this.#text ??= Buffer.from(
      kindOf(this.value) === kinds.string ? (JSON.parse(this.value) as string) : this.value,
    );
    return this.#text;
  }
}

function kindOf(value: string): number {
  if (/^[-\d]/.test(value)) return kinds.number;
  return value.startsWith('"') ? kinds.string : kinds.other;
}

/** A number as people write it, if a double holds it. */
function plain(value: string): string {
  if (kindOf(value) !== kinds.number) return value;
  const usual = String(Number(value));
  return Number.isFinite(Number(value)) && canonicalNumber(usual.replace('e+', 'e')) === value
    ? usual
    : value;
}

function copyOf(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
