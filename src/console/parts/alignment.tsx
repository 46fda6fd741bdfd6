/**
 * Shows why a chunk has its score: the most similar token of the chunk for each token of the query. The similarities add up to
 * the score. The service keeps no texts, so it knows positions alone. A person who pastes the text sees words instead.
 */
import { useState } from 'preact/hooks';
import type { Api, LocatedTokens, Result, Spans } from '../api.ts';
import { Failure } from './failure.tsx';
import { Field, submitted, tied } from './field.tsx';
import { useLoaded, useWork } from '../work.ts';

export interface AlignmentProps {
  readonly api: Api;
  readonly indexId?: string;
  readonly query: string;
  readonly result: Result;
  /** The document's, if the page has it. */
  readonly text: string | undefined;
}

interface Shown {
  readonly text: string | undefined;
  readonly located: LocatedTokens;
}

type Match = NonNullable<Result['components']>['per_query_token'][number];

/** Shades of a match; the first has no colour. */
const shades = 6;

export function Alignment({ api, indexId, query, result, text }: AlignmentProps) {
  const [pasted, setPasted] = useState('');
  const [selected, setSelected] = useState<number>();
  const locate = async (known: string | undefined): Promise<Shown> => {
    const { body } = await api.tokens({
      ...(indexId === undefined ? {} : { index_id: indexId }),
      query,
      ...(known === undefined ? {} : { document: { text: known, chunk_index: result.chunk_index } }),
    });
    return { text: known, located: body };
  };
  const first = useLoaded(() => locate(text));
  const again = useWork(() => locate(pasted));
  const shown = again.result ?? first.result;
  const matches = result.components?.per_query_token ?? [];
  const most = Math.max(...matches.map(({ similarity }) => similarity), Number.EPSILON);
  const shadeOf = (similarity: number): number =>
    Math.max(0, Math.min(shades - 1, Math.round((shades - 1) * (similarity / most))));
  const wrongText = shown?.text !== undefined && shown.located.document === null;
  return (
    <div class="alignment">
      <Failure
        of={again.failure ?? first.failure ?? (wrongText ? 'This text has no such chunk.' : undefined)}
      />
      {text === undefined && (
        <form onSubmit={submitted(again)}>
          <Field name="Text of the document, to see words instead of positions. It is not kept.">
            <textarea rows={3} required {...tied(pasted, setPasted)} />
          </Field>
          <button type="submit" disabled={again.busy}>
            Show
          </button>
        </form>
      )}
      {shown?.text !== undefined && shown.located.document !== null && (
        <Document
          text={shown.text}
          spans={shown.located.document}
          matches={matches}
          match={matches.find(({ token_index: token }) => token === selected)}
          shadeOf={shadeOf}
        />
      )}
      <Matches
        query={query}
        shown={shown}
        matches={matches}
        selected={selected}
        select={setSelected}
        shadeOf={shadeOf}
      />
    </div>
  );
}

/** The most similar token of the chunk for each token of the query. */
function Matches({
  query,
  shown,
  matches,
  selected,
  select,
  shadeOf,
}: {
  query: string;
  shown: Shown | undefined;
  matches: readonly Match[];
  selected: number | undefined;
  select: (token: number | undefined) => void;
  shadeOf: (similarity: number) => number;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Matches of query tokens">
      <table class="matches">
        <thead>
          <tr>
            <th scope="col">Query token</th>
            <th scope="col">Most similar token of the chunk</th>
            <th scope="col" class="number">
              Similarity
            </th>
          </tr>
        </thead>
        <tbody>
          {matches.map(({ token_index: token, document_token_index: position, similarity }) => (
            <tr key={token} class={token === selected ? 'selected' : undefined}>
              <th scope="row">
                <button
                  type="button"
                  class={`token shade-${shadeOf(similarity)}`}
                  aria-pressed={token === selected}
                  onClick={() => select(token === selected ? undefined : token)}
                >
                  {wordOf(query, shown?.located.query, token) ?? `token ${token}`}
                </button>
              </th>
              <td>
                {(shown?.text !== undefined && wordOf(shown.text, shown.located.document, position)) ||
                  `position ${position}`}
              </td>
              <td class="number">{similarity.toFixed(4)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The text. Matched tokens are shaded by their best similarity. */
function Document({
  text,
  spans,
  matches,
  match,
  shadeOf,
}: {
  text: string;
  spans: Spans;
  matches: readonly Match[];
  match: Match | undefined;
  shadeOf: (similarity: number) => number;
}) {
  const best = new Map<number, number>();
  for (const { document_token_index: position, similarity } of matches) {
    best.set(position, Math.max(best.get(position) ?? -Infinity, similarity));
  }
  const parts = [];
  let at = 0;
  for (const [position, [start, end]] of spans.entries()) {
    const similarity = best.get(position);
    if (similarity === undefined || start < at || start === end) continue;
    const isSelected = match?.document_token_index === position;
    parts.push(
      text.slice(at, start),
      <mark key={position} class={`shade-${shadeOf(similarity)}${isSelected ? ' selected' : ''}`}>
        {text.slice(start, end)}
      </mark>,
    );
    at = end;
  }
  return (
    <p class="document" aria-label="Text of the document, matched tokens marked">
      {parts}
      {text.slice(at)}
    </p>
  );
}

/** `undefined` if it is unknown. Special tokens stand for no text and are named by their number. */
function wordOf(text: string, spans: Spans | null | undefined, token: number): string | undefined {
  const span = spans?.[token];
  if (span === undefined) return undefined;
  const [start, end] = span;
  return start === end ? `special token ${token}` : text.slice(start, end);
}
