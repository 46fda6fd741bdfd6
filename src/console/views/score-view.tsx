/** Ranks documents for one query without storing them. */
import { useState } from 'preact/hooks';
import type { Answer, Api, Ranked } from '../api.ts';
import { Failure } from '../parts/failure.tsx';
import { Field, submitted, tied } from '../parts/field.tsx';
import { Results } from '../results/results.tsx';
import { useWork } from '../work.ts';

const documentsMax = 50;

interface Scored {
  readonly query: string;
  readonly texts: ReadonlyMap<string, string>;
  readonly answer: Answer<Ranked>;
}

export function ScoreView({ api }: { api: Api }) {
  const [query, setQuery] = useState('');
  const [documents, setDocuments] = useState<readonly string[]>(['', '']);
  const score = useWork<Scored>(async () => {
    const given = documents.map((text, at) => ({ doc_id: `document ${at + 1}`, text }));
    const answer = await api.score({ query, documents: given, return_components: true });
    return { query, texts: new Map(given.map(({ doc_id: id, text }) => [id, text])), answer };
  });
  return (
    <>
      <div>
        <h1>Score</h1>
        <p class="quiet">Ranks documents for one query. The documents are not stored.</p>
      </div>
      <form onSubmit={submitted(score)}>
        <Field name="Query">
          <input type="search" dir="auto" required {...tied(query, setQuery)} />
        </Field>
        <div class="cards">
          {documents.map((text, at) => (
            <Field key={at} name={`Document ${at + 1}`}>
              <textarea
                dir="auto"
                rows={5}
                required
                {...tied(text, (changed) => setDocuments(documents.with(at, changed)))}
              />
            </Field>
          ))}
        </div>
        <div class="row">
          <button type="submit" class="primary" disabled={score.busy}>
            Score
          </button>
          <button
            type="button"
            disabled={documents.length === documentsMax}
            onClick={() => setDocuments([...documents, ''])}
          >
            Add a document
          </button>
          <button
            type="button"
            disabled={documents.length === 1}
            onClick={() => setDocuments(documents.slice(0, -1))}
          >
            Remove the last
          </button>
        </div>
      </form>
      <Failure of={score.failure} />
      {score.result !== undefined && <Results api={api} {...score.result} />}
    </>
  );
}
