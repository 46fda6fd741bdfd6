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
