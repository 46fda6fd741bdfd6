/** Cuts the piece out of a text that a search found, and marks the words in it that matched. */
import type { RowSpans } from '../../encoder/protocol/contract.ts';
import {
  codePointsOf,
  saysSomething,
  wordAt,
  wordOf,
  type CodePoints,
  type Word,
} from '../../input/words.ts';
import {
  passagePointsMax,
  type Highlight,
  type Passage,
  type ResultComponents,
  type TextRange,
} from '../contract.ts';

/** A text, and its places in code points. */
export interface PlacedText {
  readonly text: string;
  readonly points: CodePoints;
}

/** The words of a query that its rows are pieces of; `undefined` for a row of none. */
export interface LocatedQuery {
  readonly text: string;
  readonly words: readonly (Word | undefined)[];
}

/** `spans` are in UTF-16 units of the query. */
export function locatedQuery(text: string, { starts, ends }: RowSpans): LocatedQuery {
  const words = Array.from(starts, (start, row) => speakingWord(text, { start, end: ends[row] ?? 0 }));
  return { text, words };
}

/** The words that a part of a text touches; `undefined` for spaces and punctuation. */
function speakingWord(text: string, part: Word): Word | undefined {
  const word = wordOf(text, part);
  return word !== undefined && saysSomething(text, word) ? word : undefined;
}

export function placedText(text: string): PlacedText {
  return { text, points: codePointsOf(text) };
}

export interface Cut {
  /** The chunk, in code points. */
  readonly range: TextRange;
  /** Code points before and after it. */
  readonly context: number;
  readonly components: ResultComponents | undefined;
  /** Absent where no encoder said which words its rows are of. */
  readonly query: LocatedQuery | undefined;
}

/** Undefined when the range begins beyond the end of the text. */
export function passageOf(placed: PlacedText, cut: Cut): Passage | undefined {
  const { text, points } = placed;
  const { range, context, components, query } = cut;
  if (range.start >= points.length) return undefined;
  const whole = widened(placed, {
    start: Math.max(0, range.start - context),
    end: Math.min(points.length, range.end + context),
  });
  const { start, end } = shortened(placed, whole, components);
  return {
    text: text.slice(points.unitOf(start), points.unitOf(end)),
    start,
    end,
    ...(components === undefined || query === undefined
      ? {}
      : { highlights: highlightsOf(placed, { start, end }, { components, query }) }),
  };
}

/** The range with the whole of the words that its ends cut. In code points, like all ranges here. */
function widened({ text, points }: PlacedText, { start, end }: TextRange): TextRange {
  const first = wordAt(text, points.unitOf(start));
  const last = wordAt(text, points.unitOf(end) - 1);
  return {
    start: first === undefined ? start : points.pointOf(first.start),
    end: last === undefined ? end : points.pointOf(last.end),
  };
}

/** At most `passagePointsMax` code points of the range in whole words, around the word that matches best, or else from the start. */
function shortened(
  { text, points }: PlacedText,
  range: TextRange,
  components: ResultComponents | undefined,
): TextRange {
  if (range.end - range.start <= passagePointsMax) return range;
  const best = components && bestPlace(components);
  const middle = best === undefined ? range.start : Math.floor((best.start + best.end) / 2);
  const from = Math.max(range.start, Math.min(middle - passagePointsMax / 2, range.end - passagePointsMax));
  const to = from + passagePointsMax;
  const first = wordAt(text, points.unitOf(from));
  const last = wordAt(text, points.unitOf(to) - 1);
  // A word that goes beyond an end is left out.
  const start = first && points.pointOf(first.start) < from ? points.pointOf(first.end) : from;
  const end = last && points.pointOf(last.end) > to ? points.pointOf(last.start) : to;
  return start < end ? { start, end } : { start: from, end: to };
}

/** The place of the token vector with the greatest similarity. */
function bestPlace({ similarities, places }: ResultComponents): TextRange | undefined {
  let best: TextRange | undefined;
  let most = 0;
  for (const [row, similarity] of similarities.entries()) {
    const place = places[row]?.place;
    if (place === undefined || similarity <= most) continue;
    best = place;
    most = similarity;
  }
  return best;
}

/** The words of a passage that matched, in their order. A word has the greatest similarity of its pieces. */
function highlightsOf(
  { text, points }: PlacedText,
  passage: TextRange,
  { components, query }: { readonly components: ResultComponents; readonly query: LocatedQuery },
): Highlight[] {
  const { similarities, places } = components;
  const [from, to] = [points.unitOf(passage.start), points.unitOf(passage.end)];
  const found = new Map<number, Word & { readonly similarity: number; readonly queryWord: Word }>();
  // Several rows may match a place. Finding its word takes some microseconds.
  const wordOfPlace = rememberedWords(({ start, end }) =>
    speakingWord(text, { start: points.unitOf(start), end: points.unitOf(end) }),
  );
  for (const [row, similarity] of similarities.entries()) {
    // A token without weight matches everything alike.
    const queryWord = similarity === 0 ? undefined : query.words[row];
    if (queryWord === undefined) continue;
    for (const place of places[row]?.all ?? []) {
      const word = wordOfPlace(place);
      if (word === undefined || word.start < from || word.end > to) continue;
      const known = found.get(word.start);
      if (known === undefined || similarity > known.similarity) {
        found.set(word.start, { ...word, similarity, queryWord });
      }
    }
  }
  const highlights: Highlight[] = [];
  let end = from;
  for (const word of [...found.values()].toSorted((one, other) => one.start - other.start)) {
    if (word.start < end) continue;
    end = word.end;
    highlights.push({
      text: text.slice(word.start, word.end),
      start: points.pointOf(word.start),
      end: points.pointOf(word.end),
      similarity: word.similarity,
      queryWord: query.text.slice(word.queryWord.start, word.queryWord.end),
    });
  }
  return highlights;
}

function rememberedWords(
  wordOfPlace: (place: TextRange) => Word | undefined,
): (place: TextRange) => Word | undefined {
  const known = new Map<string, Word | undefined>();
  return (place) => {
    const key = `${place.start} ${place.end}`;
    if (!known.has(key)) known.set(key, wordOfPlace(place));
    return known.get(key);
  };
}
