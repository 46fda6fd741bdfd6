/** Chooses the spans of a query that match documents, and weighs them. */
import type { EncodedQuery, RowSpans } from '../../encoder/protocol/contract.ts';
import { rowLengths } from '../operations/ranking.ts';
import type { Span } from './words.ts';

/** A search scores at most this many chunks more because of its spans. */
const chunksMax = 2_000;

export interface CountedSpan extends Span {
  /** The live documents that have it, before any filter. */
  readonly documents: number;
  /** The chunks and token vectors of those that pass the filter. The engine counts none for a span of many documents. */
  readonly chunks: number;
  readonly tokenVectors: number;
}

/**
 * Spans without a common word: the longest first, then that of the fewest documents, then the first, as long as the chunks of
 * their documents are few enough together. In the order of their places.
 */
export function chosenSpans(counted: readonly CountedSpan[]): readonly CountedSpan[] {
  const chosen: CountedSpan[] = [];
  const keys = new Set<string>();
  const words = new Set<number>();
  let chunks = 0;
  const byRank = counted.toSorted(
    (one, other) => other.words - one.words || one.documents - other.documents || one.first - other.first,
  );
  for (const span of byRank) {
    if (span.chunks === 0) continue;
    const own = Array.from({ length: span.words }, (_, at) => span.first + at);
    // Documents of a key that was chosen are there already.
    const more = keys.has(span.key) ? 0 : span.chunks;
    if (chunks + more > chunksMax || own.some((word) => words.has(word))) continue;
    chosen.push(span);
    keys.add(span.key);
    for (const word of own) words.add(word);
    chunks += more;
  }
  return chosen.toSorted((one, other) => one.first - other.first);
}

/**
 * The bonus of each span: `weight` times the lengths of the query's rows whose tokens begin in it, times its rarity, which is 1
 * for a span of one document and 0 for one of all. Rows of no text, such as those of MASK tokens, are in no span.
 */
export function bonusesOf(
  spans: readonly CountedSpan[],
  query: Pick<EncodedQuery, 'vectors' | 'rows'>,
  {
    places: { starts, ends },
    weight,
    documents,
  }: { readonly places: RowSpans; readonly weight: number; readonly documents: number },
): readonly number[] {
  const lengths = rowLengths(query);
  return spans.map((span) => {
    let sum = 0;
    for (const [row, start] of starts.entries()) {
      const isText = start < (ends[row] ?? 0);
      if (isText && span.start <= start && start < span.end) sum += lengths[row] ?? 0;
    }
    return weight * sum * rarityOf(span.documents, documents);
  });
}

function rarityOf(having: number, all: number): number {
  return all <= 1 ? 0 : Math.log(all / having) / Math.log(all);
}
