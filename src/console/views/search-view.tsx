import { useState } from 'preact/hooks';
import type { Answer, Api, JsonObject, Ranked } from '../api.ts';
import { ConditionsEditor, noConditions, whereOf } from '../parts/conditions.tsx';
import { Failure } from '../parts/failure.tsx';
import { Check, Field, focusAtFirst, submitted, tied } from '../parts/field.tsx';
import { TextFieldChoice, useTextField } from '../parts/text-field.tsx';
import { Results } from '../results/results.tsx';
import { Snippets } from '../results/snippets.tsx';
import { useWork } from '../work.ts';

interface Found {
  readonly query: string;
  readonly body: JsonObject;
  readonly textField: string;
  readonly answer: Answer<Ranked>;
}

export function SearchView({ api, indexId }: { api: Api; indexId: string }) {
  const [query, setQuery] = useState('');
  const [conditions, setConditions] = useState(noConditions);
  const [grouped, setGrouped] = useState(false);
  const [exact, setExact] = useState(false);
  const [topK, setTopK] = useState('10');
  const [candidateK, setCandidateK] = useState('');
  const textField = useTextField(api, indexId);
  const search = useWork<Found>(async () => {
    const where = whereOf(conditions);
    const body = {
      query,
      ...(topK === '' ? {} : { top_k: Number(topK) }),
      ...(candidateK === '' ? {} : { candidate_k: Number(candidateK) }),
      ...(where === undefined ? {} : { where }),
      ...(grouped ? { group_by_document: true } : {}),
      ...(exact ? { exact: true } : {}),
      ...(textField.name === '' ? {} : { passage: { from: textField.name } }),
    };
    const answer = await api.search(indexId, { ...body, return_components: true });
    return { query, body, answer, textField: textField.name };
  });
  const found = search.result;
  return (
    <section aria-label="Search">
      <form class="search" onSubmit={submitted(search)}>
        <div class="ask">
          <Field name="Query">
            <input ref={focusAtFirst} type="search" dir="auto" required {...tied(query, setQuery)} />
          </Field>
          <button type="submit" class="primary" disabled={search.busy}>
            Search
          </button>
        </div>
        <ConditionsEditor api={api} indexId={indexId} value={conditions} onChange={setConditions} />
        <div class="row options">
          <Field name="Results">
            <input type="number" min="1" max="100" {...tied(topK, setTopK)} />
          </Field>
          <Field name="Candidates">
            <input
              type="number"
              min="1"
              max="500"
              placeholder="default"
              {...tied(candidateK, setCandidateK)}
            />
          </Field>
          {textField.fields.length > 0 && <TextFieldChoice {...textField} />}
          <Check name="one result a document" value={grouped} onChange={setGrouped} />
          <Check name="exact" value={exact} onChange={setExact} />
        </div>
      </form>
      <Failure of={search.failure} />
      {found !== undefined && (
        <Results
          api={api}
          indexId={indexId}
          query={found.query}
          answer={found.answer}
          textField={found.textField}
        >
          <Snippets indexId={indexId} body={found.body} />
        </Results>
      )}
    </section>
  );
}
