/** Pages of the documents, or of those that a condition matches, and new documents. */
import { useState } from 'preact/hooks';
import type { Api, JsonObject } from '../api.ts';
import { titleField } from '../results/card-choice.tsx';
import { ConditionsEditor, noConditions, whereOf, type Conditions } from '../parts/conditions.tsx';
import { Failure } from '../parts/failure.tsx';
import { Field, submitted, tied } from '../parts/field.tsx';
import { many, shown } from '../format.ts';
import { Pages, usePages } from '../parts/pages.tsx';
import { Table } from '../parts/table.tsx';
import { Upload } from '../upload/upload.tsx';
import { useLoaded, useWork } from '../work.ts';

const pageDocuments = 25;

export interface DocumentsViewProps {
  readonly api: Api;
  readonly indexId: string;
  readonly mayChange: boolean;
  /** Called after documents were stored or deleted. */
  readonly onChange: () => void;
}

export function DocumentsView({ api, indexId, mayChange, onChange }: DocumentsViewProps) {
  const pages = usePages();
  const [changes, setChanges] = useState(0);
  /** The documents that are listed; absent = all. */
  const [where, setWhere] = useState<JsonObject>();
  const page = useLoaded(
    async () => (await api.documents(indexId, pageDocuments, pages.cursor, where)).body,
    pages.cursor,
    changes,
    where,
  );
  const show = (wanted: JsonObject | undefined): void => {
    pages.first();
    setWhere(wanted);
  };
  const changed = (): void => {
    onChange();
    pages.first();
    setChanges(changes + 1);
  };
  return (
    <section aria-label="Documents">
      {mayChange && <Upload api={api} indexId={indexId} onStored={changed} />}
      <Find indexId={indexId} />
      <Matching api={api} indexId={indexId} mayChange={mayChange} onShow={show} onDeleted={changed} />
      <Failure of={page.failure} />
      {page.result !== undefined && page.result.data.length > 0 && (
        <Table
          name="Documents"
          columns={[{ name: 'Document' }, { name: 'Metadata' }, { name: 'Chunks', number: true }]}
          rows={page.result.data.map(({ doc_id: docId, metadata, chunk_count: chunks }) => ({
            key: docId,
            cells: [
              <a href={addressOf(indexId, docId)}>{docId}</a>,
              <Metadata of={metadata} />,
              String(chunks),
            ],
          }))}
        />
      )}
      <Pages of={pages} next={page.result?.next_cursor} />
    </section>
  );
}

function addressOf(indexId: string, docId: string): string {
  return `#/indexes/${indexId}/documents/${encodeURIComponent(docId)}`;
}

/** The title if there is one, and otherwise all fields. */
function Metadata({ of: metadata }: { of: JsonObject }) {
  const title = titleField({}, metadata);
  if (title !== undefined) return <>{shown(metadata[title])}</>;
  return Object.keys(metadata).length === 0 ? null : <span class="code">{JSON.stringify(metadata)}</span>;
}

function Find({ indexId }: { indexId: string }) {
  const [docId, setDocId] = useState('');
  const open = { start: () => void (location.hash = addressOf(indexId, docId)) };
  return (
    <form onSubmit={submitted(open)}>
      <div class="ask">
        <Field name="Document id">
          <input required {...tied(docId, setDocId)} />
        </Field>
        <button type="submit">Open</button>
      </div>
    </form>
  );
}

/** Counts and shows the documents that a condition matches, and then may delete them. */
function Matching({
  api,
  indexId,
  mayChange,
  onShow,
  onDeleted,
}: {
  api: Api;
  indexId: string;
  mayChange: boolean;
  onShow: (where: JsonObject | undefined) => void;
  onDeleted: () => void;
}) {
  const [conditions, setConditions] = useState(noConditions);
  const count = useWork(async () => {
    const where = whereOf(conditions);
    if (where === undefined) throw new Error('Add a condition first.');
    // The count comes with the values of a field. Any field will do.
    const { body } = await api.facets(indexId, { fields: ['title'], limit: 1, where });
    onShow(where);
    return { where, documents: body.documents };
  });
  const remove = useWork(async () => {
    let deleted = 0;
    for (let more = true; more;) {
      const { body } = await api.deleteMatching(indexId, count.result?.where ?? {});
      deleted += body.deleted;
      more = body.more;
    }
    onDeleted();
    return { count: count.result, deleted };
  });
  const change = (changed: Conditions): void => {
    setConditions(changed);
    if (isNone(changed)) onShow(undefined);
  };
  const deleted = remove.result?.count === count.result ? remove.result?.deleted : undefined;
  const counted = count.busy ? undefined : count.result;
  const isCurrent = counted !== undefined && sameConditions(counted.where, conditions);
  return (
    <form class="search" aria-label="Documents that match" onSubmit={submitted(count)}>
      <ConditionsEditor api={api} indexId={indexId} value={conditions} onChange={change} />
      {!isNone(conditions) && (
        <div class="row">
          <button type="submit" disabled={count.busy}>
            Show
          </button>
          {isCurrent && (
            <span role="status">
              {deleted === undefined
                ? many(counted.documents, 'document matches', 'documents match')
                : `${many(deleted, 'document')} deleted`}
            </span>
          )}
          {isCurrent && mayChange && counted.documents > 0 && deleted === undefined && (
            <button type="button" class="danger" disabled={remove.busy} onClick={() => remove.start()}>
              Delete {many(counted.documents, 'document')}
            </button>
          )}
        </div>
      )}
      <Failure of={count.failure ?? remove.failure} />
    </form>
  );
}

function isNone({ list, json }: Conditions): boolean {
  return list.length === 0 && json === undefined;
}

/** Whether the count is that of the conditions on the screen: only these may be deleted. */
function sameConditions(where: JsonObject, conditions: Conditions): boolean {
  try {
    return JSON.stringify(whereOf(conditions)) === JSON.stringify(where);
  } catch {
    return false;
  }
}
