/** All indexes with what they hold, and what happened to them in the last hour. It updates by itself. */
import { useState } from 'preact/hooks';
import type { Activity, Api, Index, IndexContents } from '../api.ts';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { Choice, Field, focusAtFirst, MatchFieldsField, namesIn, submitted, tied } from '../parts/field.tsx';
import { UsageMeters } from '../parts/meter.tsx';
import { MinutePlots } from '../parts/minute-plots.tsx';
import { bytes, count } from '../format.ts';
import { recallOf } from '../parts/recall.ts';
import { useLoaded, useUpdated, useWork } from '../work.ts';

/** Each update sends two requests, which count against the tenant's rate. */
const updateMs = 30_000;
const contentsMs = 300_000;
/** The recall of an index takes a request, so only the busiest ask for it. */
const recallsMax = 10;

export function Overview({ api, mayChange }: { api: Api; mayChange: boolean }) {
  const [making, setMaking] = useState(false);
  const stored = useUpdated(async () => {
    const indexes = (await api.indexes()).body.data;
    const contents = (await api.contents()).body.data;
    return { indexes, contents: new Map(contents.map((one) => [one.id, one])) };
  }, contentsMs);
  const now = useUpdated(async () => {
    const activity = (await api.activity()).body;
    return { activity, usage: (await api.usage()).body };
  }, updateMs);
  const activity = new Map(now.result?.activity.data.map((one) => [one.index_id, one]));
  const busiest = busiestOf(now.result?.activity);
  const usage = now.result?.usage;
  const node = now.result?.activity.node ?? null;
  const indexes = stored.result?.indexes;
  return (
    <>
      <div>
        <div class="row ends">
          <h1>Overview</h1>
          {mayChange && !making && (
            <button type="button" class="primary" onClick={() => setMaking(true)}>
              New index
            </button>
          )}
        </div>
        {node !== null && <p class="quiet">The searches are those that node {node} answered.</p>}
      </div>
      <Failure of={stored.failure ?? now.failure} />
      {usage !== undefined && <UsageMeters of={usage} />}
      {making && <NewIndex api={api} onCancel={() => setMaking(false)} />}
      {indexes?.length === 0 && <p>There is no index yet.</p>}
      <ul class="cards" aria-label="Indexes">
        {indexes?.map((index) => (
          <IndexCard
            key={index.id}
            api={api}
            asksRecall={busiest.has(index.id)}
            index={index}
            contents={stored.result?.contents.get(index.id)}
            activity={activity.get(index.id)}
            from={now.result?.activity.from}
          />
        ))}
      </ul>
    </>
  );
}

function busiestOf(activity: Activity | undefined): ReadonlySet<string> {
  const busy = activity?.data.toSorted((one, two) => two.hour.searches - one.hour.searches) ?? [];
  return new Set(busy.slice(0, recallsMax).map(({ index_id: id }) => id));
}

function IndexCard({
  api,
  asksRecall,
  index,
  contents,
  activity,
  from,
}: {
  api: Api;
  asksRecall: boolean;
  index: Index;
  contents: IndexContents | undefined;
  activity: Activity['data'][number] | undefined;
  /** The start of the activity. */
  from: Activity['from'] | undefined;
}) {
  const measured = useLoaded(
    async () => (asksRecall ? (await api.index(index.id)).body : undefined),
    asksRecall,
  );
  return (
    <li class="panel card">
      <div>
        <h2>
          <a href={`#/indexes/${index.id}`}>{index.name}</a>
        </h2>
        <p class="quiet">
          {index.model}, version {index.model_version}
          {index.status !== 'ready' && `, ${index.status}`}
        </p>
      </div>
      <dl class="facts">
        <Fact name="Documents" value={contents === undefined ? '–' : count(contents.documents)} />
        <Fact name="Chunks" value={contents === undefined ? '–' : count(contents.chunks)} />
        <Fact name="Size" value={contents?.bytes === undefined ? '–' : bytes(contents.bytes)} />
        <Fact name="Recall" value={recallOf(measured.result)} />
      </dl>
      {activity === undefined || from === undefined ? (
        <p class="quiet">No searches in the last hour</p>
      ) : (
        <MinutePlots of={activity} from={from} />
      )}
    </li>
  );
}

function NewIndex({ api, onCancel }: { api: Api; onCancel: () => void }) {
  const [name, setName] = useState('');
  const [model, setModel] = useState('');
  const [matchFields, setMatchFields] = useState('');
  const models = useLoaded(async () => (await api.models()).body.data);
  const byDefault = models.result?.find(({ is_default: isDefault }) => isDefault);
  const others = models.result?.filter((one) => one !== byDefault) ?? [];
  const create = useWork(async () => {
    const { body } = await api.createIndex({
      name,
      ...(model === '' ? {} : { model }),
      ...(matchFields === '' ? {} : { match_fields: namesIn(matchFields) }),
    });
    location.hash = `#/indexes/${body.id}/documents`;
  });
  return (
    <form class="panel" aria-label="New index" onSubmit={submitted(create)}>
      <div class="row">
        <Field name="Name" wide>
          <input ref={focusAtFirst} required {...tied(name, setName)} />
        </Field>
        <Choice
          name="Model"
          describedBy="languages"
          value={model}
          options={[
            ['', `${byDefault?.name ?? 'as the service chooses'} (default)`],
            ...others.map(({ name: other }) => [other, other] as const),
          ]}
          onChange={setModel}
        />
        <MatchFieldsField value={matchFields} onChange={setMatchFields} />
      </div>
      <p class="quiet" id="languages">
        The list has the models that this service serves. An index keeps its model. bge-small-maxsim and
        minilm-l6-maxsim read English. e5-small-multilingual-maxsim reads about a hundred languages. It was
        measured in Arabic, Chinese, English, German, Greek, Romanian, Russian, Spanish and Vietnamese. A
        query and the texts that it finds may differ in language.
      </p>
      <Failure of={create.failure ?? models.failure} />
      <div class="row">
        <button type="submit" class="primary" disabled={create.busy}>
          Create
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
