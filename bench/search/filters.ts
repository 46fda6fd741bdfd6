/** Filters of the search benchmark: one metadata value for every selectivity, spread evenly over the documents; and ranges. */
import { createHash } from 'node:crypto';
import { conditionOf } from '../../src/index/terms/condition.ts';
import { seededRandom } from '../lib/seeded-random.ts';

/** One document in so many matches. */
export type Selectivity = number;

export const selectivities: readonly Selectivity[] = [2, 10, 100, 1_000, 10_000, 100_000];

/** The 16 bytes that stand for the value. */
export function termOf(selectivity: Selectivity): Uint8Array {
  return createHash('sha256').update(`one in ${selectivity}`).digest().subarray(0, 16);
}

const terms = new Map(selectivities.map((selectivity) => [selectivity, termOf(selectivity)]));

/** Terms of a document, concatenated. */
export function termsOf(document: number, documents: number): Uint8Array {
  const matching = selectivities.filter((selectivity) => matches(document, documents, selectivity));
  return new Uint8Array(Buffer.concat(matching.map((selectivity) => terms.get(selectivity)!)));
}

export function matches(document: number, documents: number, selectivity: Selectivity): boolean {
  return rankOf(document, documents) % selectivity === 0;
}

/** The same documents by a range. */
export function rangeOf(...of: readonly Selectivity[]): Uint8Array {
  const fields = of.map((selectivity) => `"of ${selectivity}":{"lt":1}`);
  const condition = conditionOf(`{${fields.join(',')}}`, 'where');
  if (condition === undefined) throw new Error('this is a bug: a range is a condition');
  return condition;
}

/** Metadata with the numbers that ranges compare. */
export function metadataOf(document: number, documents: number): string {
  const rank = rankOf(document, documents);
  return `{${selectivities.map((selectivity) => `"of ${selectivity}":${rank % selectivity}`).join(',')}}`;
}

let ranks: Uint32Array = new Uint32Array(0);

/** Place of a document in a shuffle of all. */
function rankOf(document: number, documents: number): number {
  if (ranks.length !== documents) ranks = shuffled(documents);
  return ranks[document]!;
}

function shuffled(count: number): Uint32Array {
  const random = seededRandom(count);
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let at = count - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [order[at], order[other]] = [order[other]!, order[at]!];
  }
  return order;
}
