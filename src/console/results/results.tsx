import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Alignment } from './alignment.tsx';
import type { Answer, Api, Ranked, Result } from '../api.ts';
import { codePointsOf } from '../../input/words.ts';
import { CardChoiceEditor, linkOf, titleField, useCardChoice, type CardChoice } from './card-choice.tsx';
import { many, shown } from '../format.ts';
import { Stages } from './stages.tsx';

type Passage = NonNullable<Result['passage']>;

export interface ResultsProps {
  readonly api: Api;
  /** Absent for documents that are not stored. */
  readonly indexId?: string;
  readonly query: string;
  readonly answer: Answer<Ranked>;
  readonly texts?: ReadonlyMap<string, string>;
  /** The metadata field of the passages. */
  readonly textField?: string;
  readonly children?: ComponentChildren;
}

export function Results({ api, indexId, query, answer, texts, textField, children }: ResultsProps) {
  const { results, usage } = answer.body;
  const [pasted, setPasted] = useState<ReadonlyMap<string, string>>(new Map());
  const [choice, setChoice] = useCardChoice(indexId);
  const best = Math.max(...results.map(({ score }) => score), Number.EPSILON);
  const fields = [...new Set(results.flatMap(({ metadata }) => Object.keys(metadata)))].filter(
    (name) => name !== textField,
  );
  return (
    <>
      <p role="status">
        {results.length === 0 ? 'Nothing was found' : many(results.length, 'result')}
        <span class="quiet">
          , {many(usage.candidate_count, 'chunk')} scored, {many(usage.input_tokens, 'token')} read
        </span>
      </p>
      <div class="stacked tools">
        <Stages of={answer} />
        {children}
        {indexId !== undefined && fields.length > 0 && (
          <CardChoiceEditor fields={fields} value={choice} onChange={setChoice} />
        )}
      </div>
      <ol class="results">
        {results.map((result) => (
          <li key={`${result.chunk_id} ${query}`} class="panel result">
            <Card result={result} choice={choice} fields={fields} best={best} />
            <WhenOpened summary="Why this score">
              <Alignment
                api={api}
                {...(indexId === undefined ? {} : { indexId })}
                query={query}
                result={result}
                text={texts?.get(result.doc_id) ?? pasted.get(result.doc_id)}
                onText={(text) => setPasted(new Map([...pasted, [result.doc_id, text]]))}
              />
            </WhenOpened>
          </li>
        ))}
      </ol>
    </>
  );
}

function Card({
  result,
  choice,
  fields: names,
  best,
}: {
  result: Result;
  choice: CardChoice;
  fields: readonly string[];
  best: number;
}) {
  const { doc_id: docId, chunk_index: chunk, metadata, passage, score } = result;
  const titled = titleField(choice, metadata);
  const title = titled === undefined || metadata[titled] === undefined ? docId : shown(metadata[titled]);
  const link = linkOf(choice, docId);
  const fields = Object.entries(metadata).filter(
    ([name]) => name !== titled && names.includes(name) && (choice.fields?.includes(name) ?? true),
  );
  return (
    <>
      <h2 dir="auto">
        {link === undefined ? (
          title
        ) : (
          <a href={link} target="_blank" rel="noopener noreferrer">
            {title}
          </a>
        )}
      </h2>
      {passage && <PassageText passage={passage} />}
      {fields.length > 0 && (
        <dl class="fields">
          {fields.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd dir="auto">{shown(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      <p class="row ends quiet">
        <span>
          <code class="doc-id">{docId}</code>, chunk {chunk}
        </span>
        <span class="number">score {score.toFixed(3)}</span>
      </p>
      <div class="track" aria-hidden="true">
        <span style={{ width: `${Math.max(0, (100 * score) / best)}%` }} />
      </div>
    </>
  );
}

/** A match below this part of the best one is often chance. */
const shownShare = 0.7;
/** Of a mark: the palest for a match of that part, the last for the best one. */
const shades = 5;

/** The passage of a card. The words that match best are marked, the stronger the better they match. */
function PassageText({ passage: { text, start, highlights = [] } }: { passage: Passage }) {
  const points = codePointsOf(text);
  const most = Math.max(...highlights.map(({ similarity }) => similarity), Number.EPSILON);
  const least = shownShare * most;
  const shadeOf = (similarity: number): number =>
    1 + Math.round(((shades - 1) * (similarity - least)) / (most - least));
  const parts = [];
  let at = 0;
  for (const word of highlights) {
    if (word.similarity < least) continue;
    const [from, to] = [points.unitOf(word.start - start), points.unitOf(word.end - start)];
    parts.push(
      text.slice(at, from),
      <mark key={from} class={`shade-${shadeOf(word.similarity)}`}>
        {text.slice(from, to)}
      </mark>,
    );
    at = to;
  }
  return (
    <p class="passage" dir="auto">
      {parts}
      {text.slice(at)}
    </p>
  );
}

/** Renders its content only once it was opened, because the content sends a request. */
function WhenOpened({ summary, children }: { summary: string; children: ComponentChildren }) {
  const [opened, setOpened] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpened(opened || currentTarget.open)}>
      <summary>{summary}</summary>
      {opened && children}
    </details>
  );
}
