/** Shows the settings of an index. Users who may change it can rename or delete it here. */
import { useEffect, useState } from 'preact/hooks';
import type { Api, Index } from '../api.ts';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { Choice, Field, MatchFieldsField, namesIn, submitted, tied } from '../parts/field.tsx';
import { day } from '../format.ts';
import { useLoaded, useWork } from '../work.ts';

export interface SettingsViewProps {
  readonly api: Api;
  readonly index: Index;
  readonly mayChange: boolean;
  readonly onChange: () => void;
}

export function SettingsView(props: SettingsViewProps) {
  const { index, mayChange } = props;
  return (
    <section aria-label="Settings">
      <dl class="facts">
        <Fact name="Model" value={`${index.model}, version ${index.model_version}`} />
        <Fact name="Chunks" value={`${index.chunking.max_tokens} tokens`} />
        <Fact name="Overlap" value={`${index.chunking.overlap_tokens} tokens`} />
        <Fact name="Match fields" value={index.match_fields?.join(', ') || 'none'} />
        <Fact name="Created" value={day(index.created_at)} />
      </dl>
      {mayChange ? (
        <>
          <Rename {...props} />
          <MatchFields {...props} />
          <Swap {...props} />
          <Delete {...props} />
        </>
      ) : (
        <p class="quiet">This API key may only read.</p>
      )}
    </section>
  );
}

function Rename({ api, index, onChange }: SettingsViewProps) {
  const [name, setName] = useState(index.name);
  // A swap gives the index another name.
  useEffect(() => setName(index.name), [index.name]);
  const rename = useWork(async () => {
    await api.updateIndex(index.id, { name });
    onChange();
  });
  return (
    <form class="panel" aria-label="Rename" onSubmit={submitted(rename)}>
      <h2>Rename</h2>
      <div class="ask">
        <Field name="Name">
          <input required {...tied(name, setName)} />
        </Field>
        <button type="submit" disabled={rename.busy || name === index.name}>
          Rename
        </button>
      </div>
      <Failure of={rename.failure} />
    </form>
  );
}

function MatchFields({ api, index, onChange }: SettingsViewProps) {
  const before = index.match_fields?.join(', ') ?? '';
  const [fields, setFields] = useState(before);
  const change = useWork(async () => {
    await api.updateIndex(index.id, { match_fields: namesIn(fields) });
    onChange();
  });
  return (
    <form class="panel" aria-label="Match fields" onSubmit={submitted(change)}>
      <h2>Match fields</h2>
      <p class="quiet">
        Metadata fields with codes, part numbers or names. A document whose text in one of them stands in a
        query gets a bonus. Documents that were written before match once their metadata are written again.
      </p>
      <div class="ask">
        <MatchFieldsField value={fields} onChange={setFields} />
        <button type="submit" disabled={change.busy || fields === before}>
          Change
        </button>
      </div>
      <Failure of={change.failure} />
    </form>
  );
}

function Swap({ api, index, onChange }: SettingsViewProps) {
  const others = useLoaded(async () => (await api.indexes()).body.data.filter(({ id }) => id !== index.id));
  const [chosen, setChosen] = useState('');
  const [first] = others.result ?? [];
  const other = chosen === '' ? first?.id : chosen;
  const swap = useWork(async () => {
    await api.updateIndex(index.id, { swap_name_with: other });
    onChange();
    others.start();
  });
  if (first === undefined) return null;
  return (
    <form class="panel" aria-label="Swap names" onSubmit={submitted(swap)}>
      <h2>Swap names</h2>
      <p class="quiet">
        Both names change in one step, so a client finds one of the two indexes at every moment.
      </p>
      <div class="row options">
        <Choice
          name="Other index"
          value={other ?? ''}
          options={(others.result ?? []).map(({ id, name }) => [id, name])}
          onChange={setChosen}
        />
        <button type="submit" disabled={swap.busy}>
          Swap
        </button>
      </div>
      <Failure of={others.failure ?? swap.failure} />
    </form>
  );
}

function Delete({ api, index }: SettingsViewProps) {
  const [name, setName] = useState('');
  const remove = useWork(async () => {
    await api.deleteIndex(index.id);
    location.hash = '#/';
  });
  return (
    <form class="panel" aria-label="Delete" onSubmit={submitted(remove)}>
      <h2>Delete</h2>
      <p class="quiet">The index is gone at once with all its documents, and cannot be brought back.</p>
      <div class="ask">
        <Field name={`Write the name of the index to delete it: ${index.name}`}>
          <input required {...tied(name, setName)} />
        </Field>
        <button type="submit" class="danger" disabled={remove.busy || name !== index.name}>
          Delete the index
        </button>
      </div>
      <Failure of={remove.failure} />
    </form>
  );
}
