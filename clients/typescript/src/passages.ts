/** Finds in a text what a result names. Its ranges count Unicode code points, and strings of JavaScript count UTF-16 units. */
import type { QueryResult, Result } from './types.ts';

/** A result, a chunk of a grouped result, or a grouped result, whose best chunk is taken. */
export type LocatedResult = Pick<Result, 'text_range' | 'components'> & Pick<QueryResult, 'chunks'>;

/** A token of the text whose vector is most similar to a token of the query: `text.slice(start, end)`. */
export interface Highlight {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** The best similarity of the query's tokens to it. */
  readonly similarity: number;
}

/** The part of `text` that was found. `text` must be as it was upserted. The whole text if the result has no `text_range`. */
export function passage(text: string, result: LocatedResult): string {
  const range = chunkOf(result).text_range;
  if (range === undefined) return text;
  const units = unitsOf(text);
  return text.slice(units[range.start], units[range.end]);
}

/** The tokens of `text` that matched, in their order. Empty unless the search had `return_components`. */
export function highlights(text: string, result: LocatedResult): Highlight[] {
  const units = unitsOf(text);
  const best = new Map<number, Highlight>();
  for (const { text_range, text_ranges, similarity } of chunkOf(result).components?.per_query_token ?? []) {
    // A vector that a model pooled stands for several tokens.
    for (const range of text_ranges ?? (text_range === undefined ? [] : [text_range])) {
      if ((best.get(range.start)?.similarity ?? -Infinity) >= similarity) continue;
      const start = units[range.start] ?? text.length;
      const end = units[range.end] ?? text.length;
      best.set(range.start, { text: text.slice(start, end), start, end, similarity });
    }
  }
  return [...best.values()].toSorted((a, b) => a.start - b.start);
}

function chunkOf(result: LocatedResult): Pick<Result, 'text_range' | 'components'> {
  return result.chunks?.[0] ?? result;
}

/** The UTF-16 unit where each code point begins, and the length of the text. */
function unitsOf(text: string): number[] {
  const units = [0];
  for (const point of text) units.push(units[units.length - 1]! + point.length);
  return units;
}
