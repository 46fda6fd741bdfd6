/**
 * Words of a query that match metadata values as a whole. Before a search takes its turn, the index counts the documents that
 * have each span of words, and some spans are chosen. Once the query is encoded, their bonuses are known. The engine gives them to
 * the best chunk of each document that has the span.
 */
import type { EncodedQuery, RowSpans } from '../../encoder/protocol/contract.ts';
import { invalid } from '../../errors.ts';
import type {
  NativeSearch,
  NativeSearchResult,
  NativeSpanCounts,
  NativeSpans,
} from '../../index/engine/native.ts';
import { matchedTexts, termsOfKeys } from '../../index/terms/match-terms.ts';
import { codePointsOf } from '../../input/words.ts';
import { matchWeightDefault, type MatchedSpan, type SearchRequest } from '../contract.ts';
import { bonusesOf, chosenSpans, type CountedSpan } from './spans.ts';
import { spansOf } from './words.ts';

interface WantedMatch {
  /** At least one. */
  readonly fields: readonly string[];
  readonly weight: number;
}

/** The chosen spans of a query. */
export interface PlannedMatch extends WantedMatch {
  /** The live documents of the index. */
  readonly documents: number;
  readonly spans: readonly CountedSpan[];
  /** The token vectors that the search scores because of them. */
  readonly tokenVectors: number;
}

/** The spans of an encoded query that have a bonus. */
export interface WeighedMatch {
  readonly fields: readonly string[];
  readonly spans: readonly WeighedSpan[];
  /** The part of the engine. Absent without spans. */
  readonly asked?: NonNullable<NativeSearch['match']>;
}

/** A span of a query, in code points. */
interface WeighedSpan extends Pick<MatchedSpan, 'start' | 'end' | 'bonus'> {
  readonly key: string;
  /** Its number among the spans of the engine, which has spans of one key once. */
  readonly number: number;
}

/**
 * `undefined` for a search that matches no words.
 * @throws {ServiceError} `validation_error` when the index has not the fields that are asked for. `path`: that of the search
 */
export function wantedMatch(
  { match }: Pick<SearchRequest, 'match'>,
  matchFields: readonly string[],
  path: string,
): WantedMatch | undefined {
  if (match === false) return undefined;
  if (match !== undefined && matchFields.length === 0) {
    const wayOut = 'set them with PATCH, then write the metadata of earlier documents again';
    throw invalid(`${path}match`, `the index has no match_fields: ${wayOut}`, 'no_match_fields');
  }
  const { fields = matchFields, weight = matchWeightDefault } = match ?? {};
  const other = fields.findIndex((field) => !matchFields.includes(field));
  if (other !== -1) {
    const names = matchFields.map((field) => JSON.stringify(field)).join(', ');
    const message = `must be one of the match_fields of the index, which are ${names}`;
    throw invalid(`${path}match.fields.${other}`, message, 'no_match_field');
  }
  return fields.length === 0 ? undefined : { fields, weight };
}

/** Chooses the spans of a query. `count` is asked only if the query has any. */
export async function plannedMatch(
  wanted: WantedMatch,
  query: string,
  count: (spans: NativeSpans) => Promise<NativeSpanCounts>,
): Promise<PlannedMatch> {
  const spans = spansOf(query);
  const keys = [...new Set(spans.map(({ key }) => key))];
  if (keys.length === 0) return { ...wanted, documents: 0, spans: [], tokenVectors: 0 };
  const { documents, spanDocuments, chunks, tokenVectors } = await count(termsOf(keys, wanted.fields));
  const numbers = new Map(keys.map((key, number) => [key, number]));
  const counted = spans.map((span) => {
    const number = numbers.get(span.key)!;
    return {
      ...span,
      documents: spanDocuments[number]!,
      chunks: chunks[number]!,
      tokenVectors: tokenVectors[number]!,
    };
  });
  const chosen = chosenSpans(counted);
  const once = new Map(chosen.map((span) => [span.key, span.tokenVectors]));
  const sum = [...once.values()].reduce((before, more) => before + more, 0);
  return { ...wanted, documents, spans: chosen, tokenVectors: sum };
}

/** `places`: those of the query's rows in its text, if they are known. Without them there is no bonus. */
export function weighedMatch(
  { fields, weight, documents, spans }: PlannedMatch,
  text: string,
  query: EncodedQuery,
  places: RowSpans | undefined,
): WeighedMatch {
  if (spans.length === 0 || places === undefined) return { fields, spans: [] };
  const bonuses = bonusesOf(spans, query, { places, weight, documents }).map(Math.fround);
  const having = spans.flatMap(({ start, end, key }, at) => {
    const bonus = bonuses[at]!;
    return bonus > 0 ? [{ start, end, key, bonus }] : [];
  });
  if (having.length === 0) return { fields, spans: [] };
  const points = codePointsOf(text);
  const keys = [...new Set(having.map(({ key }) => key))];
  const sums = new Float32Array(keys.length);
  const weighed = having.map(({ start, end, key, bonus }) => {
    const number = keys.indexOf(key);
    sums[number]! += bonus;
    return { key, number, start: points.pointOf(start), end: points.pointOf(end), bonus };
  });
  return { fields, spans: weighed, asked: { ...termsOf(keys, fields), bonuses: sums } };
}

function termsOf(keys: readonly string[], fields: readonly string[]): NativeSpans {
  return {
    terms: termsOfKeys(keys, fields),
    termCounts: new Uint32Array(keys.length).fill(fields.length),
  };
}

/** The spans that gave a result its bonus, with the values that they match. `position`: that of the result. */
export function matchesOf(
  { fields, spans }: WeighedMatch,
  { matched }: NativeSearchResult,
  { position, metadata }: { readonly position: number; readonly metadata: string },
): readonly MatchedSpan[] {
  const [first = 0, second = 0] = matched?.subarray(2 * position) ?? [];
  const own = spans.filter(({ number }) => (((number < 32 ? first : second) >>> (number % 32)) & 1) === 1);
  if (own.length === 0) return [];
  const texts = matchedTexts(metadata, fields);
  return own.flatMap(({ key, start, end, bonus }) => {
    const text = texts.get(key);
    // Another version of Unicode may give a text that was stored before another key.
    return text === undefined ? [] : [{ ...text, start, end, bonus }];
  });
}
