/** Words of a text. A model cuts words into pieces, which mean nothing to people. */

export interface Word {
  readonly start: number;
  readonly end: number;
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' });

export function wordsIn(text: string): readonly Word[] {
  return [...segmenter.segment(text)].map(({ index, segment }) => ({
    start: index,
    end: index + segment.length,
  }));
}

/** The UTF-16 unit where each code point of a text begins, and the length of the text. */
export function unitsOf(text: string): readonly number[] {
  const units = [0];
  for (const point of text) units.push(units.at(-1)! + point.length);
  return units;
}

/** The word in which a place lies; by halving, because a text may have many words. */
export function wordAt(words: readonly Word[], place: number): Word | undefined {
  let first = 0;
  let end = words.length;
  while (end - first > 1) {
    const middle = (first + end) >> 1;
    if (words[middle]!.start <= place) first = middle;
    else end = middle;
  }
  return words[first];
}
