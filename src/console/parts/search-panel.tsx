import { useState } from 'preact/hooks';
import type { Api, Ranked, Answer } from '../api.ts';
import { Failure } from './failure.tsx';
import { Field, checked, submitted, tied } from './field.tsx';
import { Results } from './results.tsx';
import { useWork } from '../work.ts';

interface Found {
  readonly query: string;
  readonly answer: Answer<Ranked>;
}

export function SearchPanel({ api, indexId }: { api: Api; indexId: string }) {
  const [query, setQuery] = useState('');
  const [filter, setFilter] = useState('');
  const [where, setWhere] = useState('');
  const [grouped, setGrouped] = useState(false);
  const [exact, setExact] = useState(false);
  const [topK, setTopK] = useState('10');
  const [candidateK, setCandidateK] = useState('');
  const search = useWork<Found>(async () => {
    const answer = await api.search(indexId, {
      query,
      return_components: true,
      ...(topK === '' ? {} : { top_k: Number(topK) }),
      ...(candidateK === '' ? {} : { candidate_k: Number(candidateK) }),
      ...(filter.trim() === '' ? {} : { filter: jsonObject('filter', filter) }),
      ...(where.trim() === '' ? {} : { where: jsonObject('condition', where) }),
      ...(grouped ? { group_by_document: true } : {}),
      ...(exact ? { exact: true } : {}),
    });
    return { query, answer };
  });
  return (
    <section aria-label="Search">
      <form class="search" onSubmit={submitted(search)}>
        <Field name="Query" wide>
          <input type="search" required {...tied(query, setQuery)} />
        </Field>
        <Field name="Filter (JSON object)" wide>
          <input class="code" placeholder='{"language": "en"}' {...tied(filter, setFilter)} />
        </Field>
        <Field name="Where (JSON object)" wide>
          <input class="code" placeholder='{"year": {"gte": 2020}}' {...tied(where, setWhere)} />
        </Field>
        <Field name="top_k">
          <input type="number" min="1" max="100" {...tied(topK, setTopK)} />
        </Field>
        <Field name="candidate_k">
          <input type="number" min="1" max="500" {...tied(candidateK, setCandidateK)} />
        </Field>
        <Field name="by document">
          <input type="checkbox" {...checked(grouped, setGrouped)} />
        </Field>
        <Field name="exact">
          <input type="checkbox" {...checked(exact, setExact)} />
        </Field>
        <button type="submit" class="primary" disabled={search.busy}>
          Search
        </button>
      </form>
      <Failure of={search.failure} />
      {search.result !== undefined && (
        <Results api={api} indexId={indexId} query={search.result.query} answer={search.result.answer} />
      )}
    </section>
  );
}

function jsonObject(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`the ${name} is not JSON`);
  }
}
