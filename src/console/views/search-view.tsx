import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Answer, Api, JsonObject, Ranked } from '../api.ts';
import { ConditionsEditor } from '../parts/conditions.tsx';
import { Failure } from '../parts/failure.tsx';
import { Check, Field, focusAtFirst, submitted, tied } from '../parts/field.tsx';
import { TextFieldChoice, useTextField } from '../parts/text-field.tsx';
import { Results } from '../results/results.tsx';
import { Snippets } from '../results/snippets.tsx';
import { useWork } from '../work.ts';
import { bodyOf, searchOf, wantedIn, type Wanted } from './search-address.ts';

interface Found {
  readonly wanted: Wanted;
  readonly body: JsonObject;
  readonly textField: string;
  readonly answer: Answer<Ranked>;
}

interface ResultPagesProps {
  readonly indexId: string;
  readonly of: Wanted;
  /** Results of this page. */
  readonly shown: number;
}

const topKDefault = 10;
const offsetMax = 900;

export interface SearchViewProps {
  readonly api: Api;
  readonly indexId: string;
  /** The search in the address. Submitting the form changes the address, and a changed address searches. */
  readonly search: string;
  /** Whether the index has match fields. */
  readonly mayMatch: boolean;
}

export function SearchView({ api, indexId, search: address, mayMatch }: SearchViewProps) {
  const [wanted, setWanted] = useState(() => wantedIn(address));
  const want = (change: Partial<Wanted>): void => setWanted({ ...wanted, ...change });
  const { query, conditions } = wanted;
  const textField = useTextField(api, indexId);
  const search = useSearch({ api, indexId, search: address }, textField);
  const submit = useWork(async () => {
    const changed = searchOf({ ...wanted, offset: 0 });
    if (changed === address) search.start();
    else location.hash = `#/indexes/${indexId}?${changed}`;
  });
  useEffect(() => setWanted(wantedIn(address)), [address]);
  const found = address === '' ? undefined : search.result;
  return (
    <section aria-label="Search">
      <form class="search" onSubmit={submitted(submit)}>
        <div class="ask">
          <Field name="Query">
            <input
              ref={focusAtFirst}
              type="search"
              dir="auto"
              required
              {...tied(query, (text) => want({ query: text }))}
            />
          </Field>
          <button type="submit" class="primary" disabled={search.busy}>
            Search
          </button>
        </div>
        <ConditionsEditor
          api={api}
          indexId={indexId}
          value={conditions}
          onChange={(changed) => want({ conditions: changed })}
        />
        <SearchOptions of={wanted} want={want} mayMatch={mayMatch}>
          {textField.fields.length > 0 && <TextFieldChoice {...textField} />}
        </SearchOptions>
      </form>
      <Failure of={submit.failure ?? search.failure} />
      {found !== undefined && (
        <>
          <Results
            api={api}
            indexId={indexId}
            query={found.wanted.query}
            answer={found.answer}
            textField={found.textField}
          >
            <Snippets indexId={indexId} body={found.body} />
          </Results>
          <ResultPages indexId={indexId} of={found.wanted} shown={found.answer.body.results.length} />
        </>
      )}
    </section>
  );
}

function SearchOptions({
  of: { topK, candidateK, grouped, exact, matches },
  want,
  mayMatch,
  children,
}: {
  of: Wanted;
  want: (change: Partial<Wanted>) => void;
  mayMatch: boolean;
  children: ComponentChildren;
}) {
  return (
    <div class="row options">
      <Field name="Results">
        <input type="number" min="1" max="100" {...tied(topK, (text) => want({ topK: text }))} />
      </Field>
      <Field name="Candidates">
        <input
          type="number"
          min="1"
          max="500"
          placeholder="default"
          {...tied(candidateK, (text) => want({ candidateK: text }))}
        />
      </Field>
      {children}
      <Check name="one result a document" value={grouped} onChange={(value) => want({ grouped: value })} />
      <Check name="exact" value={exact} onChange={(value) => want({ exact: value })} />
      {mayMatch && (
        <Check name="match codes and names" value={matches} onChange={(value) => want({ matches: value })} />
      )}
    </div>
  );
}

/** Searches as the address says, also whenever it changes. */
function useSearch(
  { api, indexId, search: address }: Omit<SearchViewProps, 'mayMatch'>,
  { name: textField, isKnown }: { readonly name: string; readonly isKnown: boolean },
) {
  const search = useWork<Found>(async () => {
    const wanted = wantedIn(address);
    const body = { ...bodyOf(wanted), ...passageOf(textField) };
    const answer = await api.search(indexId, { ...body, return_components: true });
    return { wanted, body, answer, textField };
  });
  useEffect(() => {
    if (address !== '' && isKnown) search.start();
  }, [address, isKnown]);
  return search;
}

function passageOf(textField: string): JsonObject {
  return textField === '' ? {} : { passage: { from: textField } };
}

/** Links to the pages before and after. */
function ResultPages({ indexId, of: wanted, shown }: ResultPagesProps) {
  const size = wanted.topK === '' ? topKDefault : Number(wanted.topK);
  const pageAt = (offset: number): string => `#/indexes/${indexId}?${searchOf({ ...wanted, offset })}`;
  const next = wanted.offset + size;
  return (
    <nav class="row" aria-label="Pages">
      {wanted.offset > 0 && <a href={pageAt(Math.max(0, wanted.offset - size))}>Previous</a>}
      {shown === size && next <= offsetMax && <a href={pageAt(next)}>Next</a>}
    </nav>
  );
}
