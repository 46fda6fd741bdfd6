/** The picture of a score: each token of a query is drawn to its most similar token of the text. */
import { shape, words, type Drawing, type Picture } from './svg.ts';

/** As the service with its default model answers; a test compares it. */
export const example = {
  query: 'how do insects communicate?',
  text: 'Bees dance to tell others the way to flowers, and ants leave scents on their paths',
  matches: [
    { token: 'how', found: 'tell', similarity: 0.53 },
    { token: 'do', found: 'tell', similarity: 0.54 },
    { token: 'insects', found: 'Bees', similarity: 0.724 },
    { token: 'communicate', found: 'tell', similarity: 0.718 },
    { token: '?', found: 'the', similarity: 0.554 },
  ],
} as const;

const rowHeight = 28;
const top = 56;
/** A similarity below is drawn as thin as this one. */
const least = 0.45;

const { query, text, matches } = example;
const score = matches.reduce((sum, { similarity }) => sum + similarity, 0).toFixed(2);

export const alignment: Picture = {
  title: 'Why this score',
  caption: `Each token of the query takes its most similar vector of the text. A vector may stand for several tokens (Bees and ants share one), and is drawn at the token nearest to it. The five similarities add up to the score, ${score}. No word of the query is in the text.`,
  description: `${matches.map(({ token, found, similarity }) => `${token} finds ${found}, ${similarity}`).join('; ')}. Query: ${query} Text: ${text}`,
  draw,
};

function draw(width: number): Drawing {
  const tokens: readonly string[] = text.match(/\w+|[^\w\s]/g) ?? [];
  const height = top + tokens.length * rowHeight;
  const left = 172;
  const right = width - 84;
  const rowOf = (place: number): number => top + (place + 0.5) * rowHeight;
  // The tokens of the query stand in the middle of the text's height.
  const step = (tokens.length - 2) / (matches.length - 1);
  const lines = matches.map(({ found, similarity }, place) => {
    const [from, to] = [rowOf(1 + place * step), rowOf(tokens.indexOf(found))];
    const bend = (right - left) / 2;
    const strength = Math.max(0, similarity - least) / (1 - least);
    return shape('path', {
      d: `M${left} ${from}C${left + bend} ${from} ${right - bend} ${to} ${right} ${to}`,
      class: 'match',
      'stroke-width': 1.5 + 10 * strength,
    });
  });
  const queries = matches.flatMap(({ token, similarity }, place) => [
    words(0, rowOf(1 + place * step) + 5, similarity.toFixed(2), { class: 'value' }),
    words(left - 8, rowOf(1 + place * step) + 5, token, { class: 'token', 'text-anchor': 'end' }),
  ]);
  const texts = tokens.map((token, place) => {
    const isFound = matches.some(({ found }) => found === token);
    return words(right + 8, rowOf(place) + 5, token, { class: isFound ? 'token' : 'token unmatched' });
  });
  const heads = [
    words(left - 8, 24, 'query', { 'text-anchor': 'end' }),
    words(right + 8, 24, 'text'),
    words(0, 24, `score ${score}`),
  ];
  return { height, marks: [...heads, ...lines, ...queries, ...texts] };
}
