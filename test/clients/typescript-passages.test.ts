/** Passages and highlights are cut by code points, whatever characters come before them. */
import { expect, test } from 'vitest';
import { highlights, passage, type LocatedResult } from '../../clients/typescript/src/passages.ts';

const text = '🎈🎈 e\u0301t 東京 bees dance';
const match = (token: number, similarity: number, range?: readonly [number, number]) => ({
  token_index: 0,
  document_token_index: token,
  similarity,
  ...(range && { text_range: { start: range[0], end: range[1] } }),
});
const chunk: LocatedResult = {
  text_range: { start: 3, end: 14 },
  components: {
    maxsim: 1,
    per_query_token: [
      match(5, 0.5, [10, 14]),
      match(3, 0.25, [7, 8]),
      match(5, 0.75, [10, 14]),
      match(0, 0.9),
    ],
  },
};

test('a passage and its highlights', () => {
  expect(passage(text, chunk)).toBe('e\u0301t 東京 bees');
  const found = highlights(text, chunk);
  expect(found.map((one) => [one.text, one.similarity])).toEqual([
    ['東', 0.25],
    ['bees', 0.75],
  ]);
  for (const one of found) expect(text.slice(one.start, one.end)).toBe(one.text);
});

test('a vector that stands for several tokens highlights each', () => {
  const ranges = [
    [3, 6],
    [7, 8],
    [10, 14],
  ] as const;
  const pooled = {
    ...match(1, 0.5, [7, 8]),
    text_ranges: ranges.map(([start, end]) => ({ start, end })),
  };
  const components = { maxsim: 1, per_query_token: [pooled, match(2, 0.75, [7, 8])] };
  const found = highlights(text, { ...chunk, components });
  expect(found.map((one) => [one.text, one.similarity])).toEqual([
    ['e\u0301t', 0.5],
    ['東', 0.75],
    ['bees', 0.5],
  ]);
});

test('of a grouped result the best chunk counts', () => {
  const grouped = { chunks: [{ chunk_id: '1-0', chunk_index: 0, score: 1, ...chunk }] };
  expect(passage(text, grouped)).toBe('e\u0301t 東京 bees');
  expect(highlights(text, grouped)).toHaveLength(2);
});

test('without a range the passage is the whole text', () => {
  expect([passage(text, {}), highlights(text, {})]).toEqual([text, []]);
});
