/** Cutting passages out of texts, and the words in them that matched. */
import { describe, expect, it } from 'vitest';
import { passagePointsMax, type ResultComponents, type TextRange } from '../../../src/service/contract.ts';
import { locatedQuery, passageOf, placedText } from '../../../src/service/passages/passage.ts';

type Match = readonly [similarity: number, places: readonly TextRange[]];

/** Each query token has the words that it matched. */
function componentsOf(matches: readonly Match[]): ResultComponents {
  return {
    maxsim: 0,
    similarities: Float32Array.from(matches, ([similarity]) => similarity),
    documentTokens: new Uint32Array(matches.length),
    places: matches.map(([, all]) => (all.length === 0 ? undefined : { place: all[0], all })),
  };
}

/** The place of a part of a text, in code points. */
function placeOf(text: string, part: string): TextRange {
  const unit = text.indexOf(part);
  const start = Array.from(text.slice(0, unit)).length;
  return { start, end: start + Array.from(part).length };
}

const cut = (text: string, range: TextRange, context = 0, components?: ResultComponents) =>
  passageOf(placedText(text), { range, context, components, query: undefined });

describe('a passage', () => {
  it('is the text at the range, and counts code points', () => {
    const text = '🎈🎈 the red kite 東京 flies';
    const range = placeOf(text, 'red kite');
    expect(cut(text, range)).toEqual({ text: 'red kite', ...range });
  });

  it('has the whole of words that its ends cut', () => {
    const text = 'unaffable 🎈 behaviour';
    expect(cut(text, { start: 2, end: 14 })).toEqual({ text, start: 0, end: 21 });
    expect(cut(text, placeOf(text, '🎈'))).toMatchObject({ text: '🎈' });
  });

  it('never parts a letter from its marks, nor the halves of a pair', () => {
    const text = 'e\u0301te\u0301 na\u0308ive 👩‍🔬 x';
    for (let start = 0; start < Array.from(text).length; start++) {
      const passage = cut(text, { start, end: start + 1 })!;
      expect(passage.text).not.toMatch(/^\p{M}|^\u200d/u);
      expect(passage.text.isWellFormed()).toBe(true);
      expect(passage.text).toBe(Array.from(text).slice(passage.start, passage.end).join(''));
    }
    expect(cut(text, { start: 0, end: 1 })).toMatchObject({ text: 'e\u0301te\u0301' });
  });

  it('has the context that is asked for, as far as the text goes', () => {
    const text = 'one two three four five';
    const range = placeOf(text, 'three');
    expect(cut(text, range, 2)).toMatchObject({ text: 'two three four' });
    expect(cut(text, range, 1000)).toEqual({ text, start: 0, end: text.length });
  });

  it('is clipped where the text is shorter than the range, and missing where it begins beyond it', () => {
    expect(cut('short', { start: 2, end: 500 })).toEqual({ text: 'short', start: 0, end: 5 });
    expect(cut('short', { start: 5, end: 9 })).toBeUndefined();
    expect(cut('', { start: 0, end: 9 })).toBeUndefined();
    expect(cut('🎈🎈', { start: 2, end: 3 })).toBeUndefined();
  });

  it('keeps half a pair that the text holds', () => {
    expect(cut('a \ud83c b', { start: 0, end: 5 })).toEqual({ text: 'a \ud83c b', start: 0, end: 5 });
  });

  it('of a long chunk begins at its start, or holds the word that matched best', () => {
    const text = Array.from({ length: 2000 }, (_, place) => `word${place}`).join(' ');
    const range = { start: 0, end: text.length };
    const first = cut(text, range)!;
    expect(first.start).toBe(0);
    const best = placeOf(text, 'word1500');
    const other = placeOf(text, 'word3 ');
    const around = cut(
      text,
      range,
      0,
      componentsOf([
        [0.2, [other]],
        [0.9, [best]],
        [0.1, []],
      ]),
    )!;
    expect(around.text).toContain(' word1500 ');
    for (const passage of [first, around]) {
      expect(passage.end - passage.start).toBeLessThanOrEqual(passagePointsMax);
      expect(passage.end - passage.start).toBeGreaterThan(passagePointsMax - 20);
      expect(text).toMatch(new RegExp(`(^| )${passage.text.trim()}( |$)`));
    }
    const last = cut(text, range, 0, componentsOf([[0.9, [placeOf(text, 'word1999')]]]))!;
    expect(last.end).toBe(text.length);
  });

  it('of one long word is cut within it', () => {
    const text = '🎈x'.repeat(6000);
    expect(cut(text, { start: 10, end: 12_000 })!.end).toBeLessThanOrEqual(12_000);
    const passage = cut('x'.repeat(9000), { start: 0, end: 9000 })!;
    expect([passage.start, passage.text]).toEqual([0, 'x'.repeat(passage.end)]);
  });
});

describe('highlights', () => {
  const text = '🎈 Honey-bees communicate, unaffably: 東京タワー!';
  const pieces = (...parts: readonly string[]) => parts.map((part) => placeOf(text, part));
  const query = locatedQuery('how insects communicate?', spansOf('how insects communicate?'));

  function spansOf(asked: string) {
    const words = ['', 'how', 'insect', 's', 'communicate', '?', ''];
    const starts = words.map((word) => (word === '' ? 0 : asked.indexOf(word)));
    starts[3] = asked.indexOf('s communicate');
    return {
      starts: Uint32Array.from(starts),
      ends: Uint32Array.from(words, (word, at) => starts[at]! + word.length),
    };
  }

  const highlighted = (matches: readonly Match[], range = { start: 0, end: 999 }) =>
    passageOf(placedText(text), { range, context: 0, components: componentsOf(matches), query })!.highlights;

  it('are whole words in the order of the text, each with its best similarity and the word of the query', () => {
    const found = highlighted([
      [0.9, pieces('Honey')],
      [0.25, pieces('aff', 'ably')],
      [0.5, pieces('bees')],
      [0.75, pieces('bee')],
      [0.875, pieces('communicate')],
      [0.7, pieces('!', '-')],
      [0.8, []],
    ]);
    expect(found).toEqual([
      { text: 'bees', ...placeOf(text, 'bees'), similarity: 0.75, queryWord: 'insects' },
      { text: 'communicate', ...placeOf(text, 'communicate'), similarity: 0.875, queryWord: 'communicate' },
      { text: 'unaffably', ...placeOf(text, 'unaffably'), similarity: 0.25, queryWord: 'how' },
    ]);
  });

  it('leave out special tokens, tokens without weight and punctuation of the query', () => {
    const bees = pieces('bees');
    expect(
      highlighted([
        [0.9, bees],
        [0, bees],
        [0.1, []],
        [0, bees],
        [0, bees],
        [0.9, bees],
        [0.9, bees],
      ]),
    ).toEqual([]);
  });

  it('lie within the passage, and none overlaps another', () => {
    const matches: Match[] = [
      [0, []],
      [0.5, pieces('bees')],
      [0.5, pieces('東', '東京タワー', 'タワー')],
    ];
    const found = highlighted(matches, placeOf(text, '東京タワー'))!;
    expect(found.length).toBeGreaterThan(0);
    for (const [at, { start }] of found.entries())
      expect(start).toBeGreaterThanOrEqual(found[at - 1]?.end ?? 0);
    expect(found.map((one) => one.text).join('')).toBe('東京タワー');
    expect(
      highlighted([
        [0, []],
        [0.5, [{ start: 900, end: 905 }]],
      ]),
    ).toEqual([]);
  });

  it('are absent without components, and where nobody knows the words of the query', () => {
    const placed = placedText(text);
    const range = { start: 0, end: 9 };
    const components = componentsOf([[0.5, pieces('bees')]]);
    expect(passageOf(placed, { range, context: 0, components, query: undefined })).not.toHaveProperty(
      'highlights',
    );
    expect(passageOf(placed, { range, context: 0, components: undefined, query })).not.toHaveProperty(
      'highlights',
    );
  });
});

describe('the time of a passage', () => {
  it('stays below that of a turn where every row of a long query matches vectors of many tokens', () => {
    const text = '今天我们在东京看到了很多蜜蜂跳舞。'.repeat(30);
    const asked = '蜜蜂如何告诉彼此花在哪里？'.repeat(40);
    const rows = 512;
    const starts = Uint32Array.from({ length: rows }, (_, row) => row);
    const query = locatedQuery(asked, { starts, ends: starts.map((start) => start + 1) });
    const places = Array.from({ length: rows }, (_, row) =>
      Array.from({ length: 20 }, (__, place) => {
        const start = (row * 7 + place * 25) % text.length;
        return { start, end: start + 1 };
      }),
    );
    const components = componentsOf(places.map((all) => [0.5, all] as const));
    const placed = placedText(text);
    const times = Array.from({ length: 5 }, () => {
      const startMs = performance.now();
      const { highlights } = passageOf(placed, {
        range: { start: 0, end: text.length },
        context: 0,
        components,
        query,
      })!;
      expect(highlights!.length).toBeGreaterThan(50);
      return performance.now() - startMs;
    });
    // It took some 150 ms where the word of a place was found again for each row.
    expect(Math.min(...times)).toBeLessThan(50);
  });
});
