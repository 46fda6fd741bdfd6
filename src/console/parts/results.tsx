import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Alignment } from './alignment.tsx';
import type { Answer, Api, Ranked } from '../api.ts';
import { count } from '../format.ts';
import { Stages } from './stages.tsx';

export interface ResultsProps {
  readonly api: Api;
  /** Absent for documents that are not stored. */
  readonly indexId?: string;
  readonly query: string;
  readonly answer: Answer<Ranked>;
  readonly texts?: ReadonlyMap<string, string>;
}

export function Results({ api, indexId, query, answer, texts }: ResultsProps) {
  const { results, hint, usage } = answer.body;
  return (
    <>
      <p role="status">
        {results.length === 0 ? 'Nothing was found.' : `${results.length} results`},{' '}
        {count(usage.candidate_count)} candidates, {count(usage.input_tokens)} tokens
      </p>
      {hint !== undefined && <p class="note">{hint}</p>}
      <Stages of={answer} />
      <ol class="results">
        {results.map((result) => (
          <li key={result.chunk_id}>
            <div class="result">
              <span class="doc-id">{result.doc_id}</span>
              <span class="note">chunk {result.chunk_index}</span>
              <span class="score">{result.score.toFixed(4)}</span>
            </div>
            {Object.keys(result.metadata).length > 0 && (
              <code class="metadata">{JSON.stringify(result.metadata)}</code>
            )}
            <WhenOpened summary="Why this score">
              <Alignment
                api={api}
                {...(indexId === undefined ? {} : { indexId })}
                query={query}
                result={result}
                text={texts?.get(result.doc_id)}
              />
            </WhenOpened>
          </li>
        ))}
      </ol>
    </>
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
