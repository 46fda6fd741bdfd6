/** Pictures of a score: each token of a query is drawn to its most similar token of the text. */
import { shape, words, type Drawing, type Picture } from './svg.ts';

/** As the service answers; a test compares it. */
export interface Example {
  readonly model: string;
  readonly query: string;
  readonly text: string;
  readonly matches: readonly Match[];
}

interface Match {
  readonly token: string;
  /** A token of the text. */
  readonly found: string;
  readonly similarity: number;
}

/** A token of the text from top to bottom, and the words that the picture has for it. */
interface Row {
  readonly token: string;
  readonly shown: string;
}

const rowHeight = 28;
const top = 56;
/** A similarity below is drawn as thin as this one. */
const least = 0.45;

export const oneLanguage = {
  model: 'bge-small-maxsim',
  query: 'how do insects communicate?',
  text: 'Bees dance to tell others the way to flowers, and ants leave scents on their paths',
  matches: [
    { token: 'how', found: 'tell', similarity: 0.53 },
    { token: 'do', found: 'tell', similarity: 0.54 },
    { token: 'insects', found: 'Bees', similarity: 0.724 },
    { token: 'communicate', found: 'tell', similarity: 0.718 },
    { token: '?', found: 'the', similarity: 0.554 },
  ],
} satisfies Example;

/** A question in another language than the text, both our own. A word may be several tokens. The first three are the model's prefix. */
export const twoLanguages = {
  model: 'e5-small-multilingual-maxsim',
  query: 'Wie sprechen Bienen miteinander?',
  text: '蜜蜂跳舞，告诉同伴花在哪个方向，有多远。',
  matches: [
    { token: 'que', found: '哪个', similarity: 0.557 },
    { token: 'ry', found: '哪个', similarity: 0.612 },
    { token: ':', found: '告诉', similarity: 0.566 },
    { token: 'Wie', found: '哪个', similarity: 0.767 },
    { token: 'sprechen', found: '告诉', similarity: 1.012 },
    { token: 'Bien', found: '蜂', similarity: 0.855 },
    { token: 'en', found: '蜂', similarity: 0.591 },
    { token: 'miteinander', found: '同伴', similarity: 1.027 },
    { token: '?', found: '告诉', similarity: 0.592 },
  ],
} satisfies Example;
/** The tokens of that text, in English. */
const meanings = [
  ['蜜', 'honey'],
  ['蜂', 'bee'],
  ['跳舞', 'dance'],
  ['，', ''],
  ['告诉', 'tell'],
  ['同伴', 'others'],
  ['花', 'flowers'],
  ['在', 'are in'],
  ['哪个', 'which'],
  ['方向', 'way'],
  ['，', ''],
  ['有多', 'how'],
  ['远', 'far'],
  ['。', ''],
] as const;

const scoreOf = (matches: readonly Match[]): string =>
  matches.reduce((sum, { similarity }) => sum + similarity, 0).toFixed(2);

export const alignment = pictureOf(oneLanguage, {
  title: 'Why this score',
  caption: `Each token of the query takes its most similar vector of the text. A vector may stand for several tokens (Bees and ants share one), and is drawn at the token nearest to it. The five similarities add up to the score, ${scoreOf(oneLanguage.matches)}. No word of the query is in the text.`,
  rows: (oneLanguage.text.match(/\w+|[^\w\s]/g) ?? []).map((token) => ({ token, shown: token })),
});

export const languages = pictureOf(twoLanguages, {
  title: 'A question in German, a text in Chinese',
  caption: `The question asks how bees talk to each other. Its words find “tell”, “bee” and “others”. The model, e5-small-multilingual-maxsim, writes “query:” before each question, and these three tokens count, too. The similarities add up to the score, ${scoreOf(twoLanguages.matches)}.`,
  rows: meanings.map(([token, meaning]) => ({
    token,
    shown: meaning === '' ? token : `${token} ${meaning}`,
  })),
});

function pictureOf(
  example: Example,
  {
    title,
    caption,
    rows,
  }: { readonly title: string; readonly caption: string; readonly rows: readonly Row[] },
): Picture {
  const { query, text, matches } = example;
  const pairs = matches.map(({ token, found, similarity }) => `${token} finds ${found}, ${similarity}`);
  return {
    title,
    caption,
    description: `${pairs.join('; ')}. Query: ${query} Text: ${text}`,
    draw: (width) => draw(matches, rows, width),
  };
}

function draw(matches: readonly Match[], rows: readonly Row[], width: number): Drawing {
  const height = top + Math.max(rows.length, matches.length) * rowHeight;
  const left = 150;
  const right = width - 100;
  const rowOf = (place: number): number => top + (place + 0.5) * rowHeight;
  // The tokens of the query stand in the middle of the height.
  const step = (rows.length - 2) / (matches.length - 1);
  const lines = matches.map(({ found, similarity }, place) => {
    const [from, to] = [rowOf(1 + place * step), rowOf(rows.findIndex(({ token }) => token === found))];
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
  const texts = rows.map(({ token, shown }, place) => {
    const isFound = matches.some(({ found }) => found === token);
    return words(right + 8, rowOf(place) + 5, shown, { class: isFound ? 'token' : 'token unmatched' });
  });
  const heads = [
    words(left - 8, 24, 'query', { 'text-anchor': 'end' }),
    words(right + 8, 24, 'text'),
    words(0, 24, `score ${scoreOf(matches)}`),
  ];
  return { height, marks: [...heads, ...lines, ...queries, ...texts] };
}
