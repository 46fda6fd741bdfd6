/**
 * Shows why a chunk has its score: for each word of the query, the most similar words of the chunk, and the metadata values that
 * words of the query match as a whole. Their similarities and bonuses add up to the score. A result with a passage has the words. For others a person may paste the text, or sees positions alone.
 */
import { useState } from 'preact/hooks';
import type { Api, Result, Spans } from '../api.ts';
import { Failure } from '../parts/failure.tsx';
import { Field, submitted, tied } from '../parts/field.tsx';
import { Table } from '../parts/table.tsx';
import { useLoaded, useWork } from '../work.ts';
import { codePointsOf, wordAt, wordOf, type Word } from '../../input/words.ts';

export interface AlignmentProps {
  readonly api: Api;
  readonly indexId?: string;
  readonly query: string;
  readonly result: Result;
  /** The document's, if the page has it. */
  readonly text: string | undefined;
  /** Keeps a text that a person pasted, for the other chunks of the document. */
  readonly onText: (text: string) => void;
}

type Match = NonNullable<Result['components']>['per_query_token'][number];

/** A word of the query, or all special tokens together, with the matches of its pieces. */
interface QueryWord {
  readonly name: string;
  readonly matches: Match[];
}

/** A text, or a passage of it. */
interface Piece {
  readonly text: string;
  /** Code points of the whole text before it. */
  readonly first: number;
}

/** A text, the chunk in it, and the words of matches. */
interface Located {
  readonly text: string;
  readonly chunk: Word;
  readonly wordsOf: WordsOfMatch;
}

/** Shades of a match; the first has no colour. */
const shades = 6;
/** Tokens that the model adds to each text, such as [CLS]. */
const specialTokens = 'special tokens';
/** Characters before and after the chunk that are shown, too. */
const around = 160;

export function Alignment({ api, indexId, query, result, text, onText }: AlignmentProps) {
  const [pasted, setPasted] = useState('');
  const [selected, setSelected] = useState<string>();
  const { passage } = result;
  const located = useLoaded(() => tokensOf({ api, indexId, query, result, text }), text);
  const paste = useWork(async () => onText(pasted));
  const shown = located.result;
  const words = queryWords(query, shown?.tokens.query, result.components?.per_query_token ?? []);
  const most = Math.max(
    ...words.flatMap(({ matches }) => matches.map(({ similarity }) => similarity)),
    Number.EPSILON,
  );
  const shadeOf = (matches: readonly Match[]): number => {
    const best = Math.max(...matches.map(({ similarity }) => similarity));
    return Math.max(0, Math.min(shades - 1, Math.round((shades - 1) * (best / most))));
  };
  const spans = shown?.tokens.document ?? undefined;
  const isOther = !passage && shown?.text !== undefined && spans === undefined;
  const inText = locatedIn(pieceOf(passage, isOther ? undefined : shown?.text), spans, result);
  return (
    <div class="stacked">
      <Failure of={located.failure ?? (isOther ? 'This text has no such chunk.' : undefined)} />
      {!passage && (text === undefined || isOther) && (
        <form onSubmit={submitted(paste)}>
          <Field name="Text of the document, to see words instead of positions. It is not kept.">
            <textarea dir="auto" rows={3} required {...tied(pasted, setPasted)} />
          </Field>
          <button type="submit">Show</button>
        </form>
      )}
      {inText !== undefined && (
        <Passage
          located={inText}
          matches={words.flatMap(({ matches }) => matches)}
          selected={words.find(({ name }) => name === selected)?.matches ?? []}
          shadeOf={shadeOf}
        />
      )}
      <p class="legend row quiet">
        Similar to a word of the query:
        <span>not</span>
        <span class="shade-1">little</span>
        <span class="shade-3">more</span>
        <span class="shade-5">most</span>
      </p>
      {words.some(({ name }) => name === specialTokens) && (
        <p class="quiet">The model adds special tokens, such as [CLS], to each query and each chunk.</p>
      )}
      <Table
        name="Matches of the words of the query"
        columns={[
          { name: 'Word of the query' },
          { name: 'Most similar in the chunk' },
          { name: 'Adds to the score', number: true },
        ]}
        rows={words.map(({ name, matches }) => ({
          key: name,
          selected: name === selected,
          cells: [
            <button
              type="button"
              class={`word shade-${shadeOf(matches)}`}
              aria-pressed={name === selected}
              onClick={() => setSelected(name === selected ? undefined : name)}
            >
              {name}
            </button>,
            placesOf(matches, inText),
            sumOf(matches).toFixed(3),
          ],
        }))}
      />
      <Bonuses query={query} matches={result.components?.matches ?? []} />
    </div>
  );
}

/** The metadata values that words of the query match. */
function Bonuses({
  query,
  matches,
}: {
  query: string;
  matches: NonNullable<NonNullable<Result['components']>['matches']>;
}) {
  if (matches.length === 0) return null;
  const points = codePointsOf(query);
  return (
    <Table
      name="Metadata values that match as a whole"
      columns={[
        { name: 'Words of the query' },
        { name: 'Metadata value' },
        { name: 'Adds to the score', number: true },
      ]}
      rows={matches.map(({ field, value, start, end, bonus }) => ({
        key: String(start),
        cells: [
          query.slice(points.unitOf(start), points.unitOf(end)),
          `${field}: ${value}`,
          bonus.toFixed(3),
        ],
      }))}
    />
  );
}

function sumOf(matches: readonly Match[]): number {
  return matches.reduce((sum, { similarity }) => sum + similarity, 0);
}

/** In the order of the query. A word that occurs twice has its number. */
function queryWords(
  query: string,
  spans: Spans | null | undefined,
  matches: readonly Match[],
): readonly QueryWord[] {
  const found = new Map<string, QueryWord & { readonly text: string }>();
  for (const match of matches) {
    const span = spans?.[match.token_index];
    const word =
      span === undefined || span[0] === span[1] ? undefined : wordOf(query, { start: span[0], end: span[1] });
    const text =
      word !== undefined
        ? query.slice(word.start, word.end)
        : span === undefined
          ? `token ${match.token_index}`
          : specialTokens;
    const place = word === undefined ? text : String(word.start);
    const known = found.get(place);
    if (known !== undefined) known.matches.push(match);
    else {
      const before = [...found.values()].filter((other) => other.text === text).length;
      found.set(place, { text, name: before === 0 ? text : `${text} (${before + 1})`, matches: [match] });
    }
  }
  // Special tokens are for those who know the model.
  return [...found.values()].toSorted(
    (one, two) => Number(one.text === specialTokens) - Number(two.text === specialTokens),
  );
}

/** The words of the text, or the positions of the token vectors, that the pieces of a word matched. */
function placesOf(matches: readonly Match[], located: Located | undefined): string {
  if (located === undefined)
    return [...new Set(matches.map((match) => `position ${match.document_token_index}`))].join(', ');
  const { text, wordsOf } = located;
  const names = matches.flatMap((match) => {
    const words = wordsOf(match);
    return words.length === 0 ? 'a special token' : words.map(({ start, end }) => text.slice(start, end));
  });
  return [...new Set(names)].join(', ');
}

/** The words of a match of a result. The result has its ranges, in code points. In old documents only the tokens tell them. */
type WordsOfMatch = (match: Match) => readonly Word[];

/** Locates the tokens of the query, and those of the chunk in the whole text if no passage shows them. */
async function tokensOf({
  api,
  indexId,
  query,
  result: { chunk_index, passage },
  text,
}: Pick<AlignmentProps, 'api' | 'query' | 'result' | 'text'> & { indexId: string | undefined }) {
  const document = text === undefined || passage ? {} : { document: { text, chunk_index } };
  const ofIndex = indexId === undefined ? {} : { index_id: indexId };
  return { text, tokens: (await api.tokens({ ...ofIndex, query, ...document })).body };
}

function pieceOf(passage: Result['passage'], whole: string | undefined): Piece | undefined {
  if (passage) return { text: passage.text, first: passage.start };
  return whole === undefined ? undefined : { text: whole, first: 0 };
}

/** `spans`: those of the tokens of the chunk, if the piece is the whole text. */
function locatedIn(piece: Piece | undefined, spans: Spans | undefined, result: Result): Located | undefined {
  if (piece === undefined) return undefined;
  const { text, first } = piece;
  const points = codePointsOf(text);
  const unitsOf = ({ start, end }: Word): Word => ({
    start: points.unitOf(Math.max(0, start - first)),
    end: points.unitOf(Math.max(0, end - first)),
  });
  const placesIn = ({ document_token_index: position, text_range, text_ranges }: Match): readonly Word[] => {
    const known = spans?.slice(position, position + 1).map(([start, end]) => ({ start, end })) ?? [];
    if (result.text_range === undefined) return known;
    return (text_ranges ?? (text_range === undefined ? [] : [text_range])).map(unitsOf);
  };
  const wordsOf: WordsOfMatch = (match) => {
    const found = placesIn(match).flatMap((place) => wordOf(text, place) ?? []);
    return [...new Map(found.map((word) => [word.start, word])).values()];
  };
  return { text, chunk: chunkIn(text, spans, result.text_range && unitsOf(result.text_range)), wordsOf };
}

/** The chunk by its range. In old documents only the tokens tell it. */
function chunkIn(text: string, spans: Spans | undefined, range: Word | undefined): Word {
  const places = spans?.filter(([start, end]) => start < end) ?? [];
  const start = range?.start ?? Math.min(...places.map(([from]) => from));
  const end = range?.end ?? Math.max(...places.map(([, to]) => to));
  return { start: wordAt(text, start)?.start ?? 0, end: Math.max(0, end) };
}

/** The chunk and a little around it. Matched words are shaded by their best similarity. */
function Passage({
  located: { text, chunk, wordsOf },
  matches,
  selected,
  shadeOf,
}: {
  located: Located;
  matches: readonly Match[];
  selected: readonly Match[];
  shadeOf: (matches: readonly Match[]) => number;
}) {
  const byWord = new Map<number, { readonly word: Word; readonly own: Match[] }>();
  for (const match of matches) {
    for (const word of wordsOf(match)) {
      const known = byWord.get(word.start);
      if (known === undefined) byWord.set(word.start, { word, own: [match] });
      else known.own.push(match);
    }
  }
  const chosen = new Set(selected.flatMap((match) => wordsOf(match).map((word) => word.start)));
  const { start, end } = chunk;
  const parts = [];
  let at = start;
  for (const { word, own } of [...byWord.values()].toSorted((one, two) => one.word.start - two.word.start)) {
    if (word.start < at) continue;
    const mark = `shade-${shadeOf(own)}${chosen.has(word.start) ? ' selected' : ''}`;
    parts.push(
      text.slice(at, word.start),
      <mark key={word.start} class={mark}>
        {text.slice(word.start, word.end)}
      </mark>,
    );
    at = word.end;
  }
  return (
    <p
      class="document"
      dir="auto"
      tabIndex={0}
      role="region"
      aria-label="Passage of the text, matched words marked"
    >
      <span class="quiet">
        {start > around && '… '}
        {text.slice(Math.max(0, start - around), start)}
      </span>
      {parts}
      {text.slice(at, end)}
      <span class="quiet">
        {text.slice(Math.max(at, end), end + around)}
        {end + around < text.length && ' …'}
      </span>
    </p>
  );
}
