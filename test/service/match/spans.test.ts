/** Which spans of a query match, and the bonuses that they give. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EncodedQuery, RowSpans } from '../../../src/encoder/protocol/contract.ts';
import type { NativeSearchResult, NativeSpanCounts, NativeSpans } from '../../../src/index/engine/native.ts';
import { termsOfKeys } from '../../../src/index/terms/match-terms.ts';
import { matchesOf, plannedMatch, wantedMatch, weighedMatch } from '../../../src/service/match/match.ts';
import { chosenSpans, type CountedSpan } from '../../../src/service/match/spans.ts';
import { rounds } from '../../rounds.ts';

const span = (first: number, words: number, counts: Partial<CountedSpan> = {}): CountedSpan => ({
  start: 10 * first,
  end: 10 * (first + words) - 1,
  first,
  words,
  key: `${first} ${words}`,
  documents: 1,
  chunks: 1,
  tokenVectors: 10,
  ...counts,
});
const namesOf = (spans: readonly CountedSpan[]): readonly string[] => spans.map(({ key }) => key);

describe('spans are chosen', () => {
  it('the longest first, then that of the fewest documents, then the first', () => {
    expect(namesOf(chosenSpans([span(0, 1), span(0, 2), span(1, 3), span(4, 1)]))).toEqual([
      '0 1',
      '1 3',
      '4 1',
    ]);
    expect(namesOf(chosenSpans([span(0, 2, { documents: 2 }), span(1, 2), span(2, 2)]))).toEqual(['1 2']);
    expect(namesOf(chosenSpans([span(0, 2), span(1, 2), span(2, 2)]))).toEqual(['0 2', '2 2']);
  });

  it('unless none of their documents counts', () => {
    expect(namesOf(chosenSpans([span(0, 2, { chunks: 0 }), span(0, 1)]))).toEqual(['0 1']);
  });

  it('until their documents have 2,000 chunks, those of one key once', () => {
    const many = (first: number, chunks: number, key = `${first} 1`) => span(first, 1, { chunks, key });
    const chosen = chosenSpans([many(0, 1_999), many(1, 2), many(2, 1), many(3, 1_999, '0 1')]);
    expect(chosen.map(({ first }) => first)).toEqual([0, 2, 3]);
  });

  it('as one after the other by these rules', () => {
    const some = fc.record({
      first: fc.nat(12),
      words: fc.integer({ min: 1, max: 6 }),
      documents: fc.integer({ min: 1, max: 150 }),
      chunks: fc.nat(900),
    });
    const byPlace = { selector: (one: { first: number; words: number }) => `${one.first} ${one.words}` };
    fc.assert(
      fc.property(fc.uniqueArray(some, byPlace), (each) => {
        let left = each.map(({ first, words, ...counts }) => span(first, words, counts));
        const chosen: CountedSpan[] = [];
        while (left.length > 0) {
          const longest = Math.max(...left.map(({ words }) => words));
          const fewest = Math.min(...left.flatMap((one) => (one.words === longest ? [one.documents] : [])));
          const best = left.filter((one) => one.words === longest && one.documents === fewest);
          const next = best.reduce((one, other) => (one.first < other.first ? one : other));
          left = left.filter((one) => one !== next);
          const before = chosen.reduce((sum, { chunks }) => sum + chunks, 0);
          const overlaps = chosen.some(
            (one) => one.first < next.first + next.words && next.first < one.first + one.words,
          );
          if (!overlaps && next.chunks > 0 && before + next.chunks <= 2_000) chosen.push(next);
        }
        expect(
          namesOf(chosenSpans(each.map(({ first, words, ...counts }) => span(first, words, counts)))),
        ).toEqual(namesOf(chosen.toSorted((one, other) => one.first - other.first)));
      }),
      { numRuns: rounds({ short: 1_000, nightly: 100_000 }) },
    );
  });
});

describe('a search', () => {
  const indexed = ['code', 'names.all'];

  it('takes the match fields of its index, or some of them, with a weight', () => {
    const wanted = (match: Parameters<typeof wantedMatch>[0]['match']) =>
      wantedMatch({ match }, indexed, 'queries.1.');
    expect(wanted(undefined)).toEqual({ fields: indexed, weight: 0.5 });
    expect(wanted({ fields: ['names.all'], weight: 2 })).toEqual({ fields: ['names.all'], weight: 2 });
    expect(wanted(false)).toBeUndefined();
    expect(() => wanted({ fields: ['code', 'names'] })).toThrow(
      'queries.1.match.fields.1: must be one of the match_fields of the index, which are "code", "names.all"',
    );
  });

  it('of an index without any matches nothing, and may not ask for it', () => {
    expect(wantedMatch({ match: undefined }, [], '')).toBeUndefined();
    expect(wantedMatch({ match: false }, [], '')).toBeUndefined();
    expect(() => wantedMatch({ match: {} }, [], '')).toThrow(/^match: the index has no match_fields/);
  });
});

const wanted = { fields: ['code', 'part'], weight: 0.5 };

/** Plans a query whose spans have these numbers of documents, by key; each has one chunk of 7 token vectors. */
async function planned(query: string, having: Readonly<Record<string, number>>) {
  const asked: NativeSpans[] = [];
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
  const keys = new Map(Object.keys(having).map((key) => [hex(termsOfKeys([key], ['code'])), key]));
  const plan = await plannedMatch(wanted, query, async (spans): Promise<NativeSpanCounts> => {
    asked.push(spans);
    const counts = Float64Array.from(spans.termCounts, (count, at) => {
      expect(count).toBe(wanted.fields.length);
      return having[keys.get(hex(spans.terms.subarray(32 * at, 32 * at + 16))) ?? ''] ?? 0;
    });
    const perDocument = (each: number) => counts.map((count) => each * count);
    return { documents: 1_000, spanDocuments: counts, chunks: perDocument(1), tokenVectors: perDocument(7) };
  });
  return { plan, asked };
}

/** A query whose rows have these lengths; one row a word. */
function encoded(query: string, lengths: readonly number[]): { query: EncodedQuery; places: RowSpans } {
  const words = [...query.matchAll(/\S+/g)];
  const vectors = Float32Array.from(lengths.flatMap((length) => [0.6 * length, 0.8 * length]));
  return {
    query: {
      inputTokens: words.length,
      rows: lengths.length,
      vectors,
      offsets: new Float32Array(lengths.length),
      timings: { tokenizeMs: 0, queueMs: 0, runMs: 0, rowsMs: 0 },
    },
    places: {
      starts: Uint32Array.from(lengths, (_, at) => words[at]?.index ?? 0),
      ends: Uint32Array.from(lengths, (_, at) => (words[at] ? words[at].index + words[at][0].length : 0)),
    },
  };
}

describe('a bonus', () => {
  it('is the weight times the lengths of the rows that begin in the span times its rarity', async () => {
    const text = '🎈 code E11 65 or A1';
    const { plan } = await planned(text, { e1165: 10, a1: 1, or: 100 });
    expect(plan.tokenVectors).toBe(7 * 111);
    // The last row is that of a special token.
    const rows = encoded(text, [1, 1, 2, 3, 0.25, 4, 9]);
    const weighed = weighedMatch(plan, text, rows.query, rows.places);
    expect(weighed.spans).toMatchObject([
      { key: 'e1165', start: 7, end: 13, bonus: expect.closeTo(0.5 * 5 * (2 / 3), 6) },
      { key: 'or', start: 14, end: 16, bonus: expect.closeTo(0.5 * 0.25 * (1 / 3), 6) },
      { key: 'a1', start: 17, end: 19, bonus: expect.closeTo(0.5 * 4, 6) },
    ]);
    expect([...weighed.asked!.bonuses]).toEqual(weighed.spans.map(({ bonus }) => bonus));
    expect(weighed.asked!.terms).toEqual(termsOfKeys(['e1165', 'or', 'a1'], wanted.fields));
  });

  it('is none for words behind the cut, for documents that all have the name, and without places', async () => {
    const text = 'A1 B2 C3';
    const { plan } = await planned(text, { a1: 1, b2: 1, c3: 1 });
    const rows = encoded(text, [1, 0]);
    expect(weighedMatch(plan, text, rows.query, rows.places).spans.map(({ key }) => key)).toEqual(['a1']);
    expect(weighedMatch(plan, text, rows.query, undefined)).toEqual({ fields: wanted.fields, spans: [] });
    for (const documents of [0, 1]) {
      const { spans } = weighedMatch({ ...plan, documents }, text, rows.query, rows.places);
      expect(spans).toEqual([]);
    }
  });

  it('is asked for once where words come again, and explained at each place', async () => {
    const text = Array.from({ length: 40 }, (_, at) => `N${at % 36}`).join(' ');
    const having = Object.fromEntries(Array.from({ length: 36 }, (_, at) => [`n${at}`, 1]));
    const { plan, asked } = await planned(text, having);
    expect(asked).toHaveLength(1);
    expect(plan.tokenVectors).toBe(7 * 36);
    const rows = encoded(
      text,
      Array.from({ length: 40 }, () => 1),
    );
    const weighed = weighedMatch(plan, text, rows.query, rows.places);
    expect(weighed.asked!.termCounts).toHaveLength(36);
    expect([...weighed.asked!.bonuses].map((bonus) => bonus / 0.5)).toEqual(
      Array.from({ length: 36 }, (_, at) => expect.closeTo(at < 4 ? 2 : 1, 5)),
    );
    // The first result has no bonus, the second that of the names 1, 31, 32 and 35.
    const found = { matched: Uint32Array.of(0, 0, 2 ** 31 + 2, 1 + 8) } as NativeSearchResult;
    const metadata = '{"code":["n-1","N31"],"part":["N 32","n35","n1"]}';
    expect(matchesOf(weighed, found, { position: 0, metadata })).toEqual([]);
    const matches = matchesOf(weighed, found, { position: 1, metadata });
    expect(matches.map(({ field, value, start, end }) => [field, value, text.slice(start, end)])).toEqual([
      ['code', 'n-1', 'N1'],
      ['code', 'N31', 'N31'],
      ['part', 'N 32', 'N32'],
      ['part', 'n35', 'N35'],
      ['code', 'n-1', 'N1'],
    ]);
  });

  it('is not looked for in a query without names', async () => {
    const { plan, asked } = await planned('... - ?', {});
    expect(asked).toEqual([]);
    expect(plan).toMatchObject({ spans: [], tokenVectors: 0 });
  });
});
