/** One document: its metadata and its expiry, which a person may change, and its end. */
import { useState } from 'preact/hooks';
import type { Api, DocumentChange } from '../api.ts';
import { Asked } from '../parts/asked.tsx';
import { jsonObject } from '../parts/json-object.ts';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { Choice, ExpiryField, Field, expiresAt, expiryValue, submitted, tied } from '../parts/field.tsx';
import { useLoaded, useWork } from '../work.ts';

export interface DocumentViewProps {
  readonly api: Api;
  readonly indexId: string;
  readonly docId: string;
  readonly mayChange: boolean;
  readonly onDeleted: () => void;
}

export function DocumentView({ api, indexId, docId, mayChange, onDeleted }: DocumentViewProps) {
  const [metadata, setMetadata] = useState('');
  const [field, setField] = useState<ChangedField>('metadata');
  const [expiry, setExpiry] = useState('');
  const [storedExpiry, setStoredExpiry] = useState('');
  const [asked, setAsked] = useState(false);
  const document = useLoaded(async () => {
    const { body, text } = await api.document(indexId, docId);
    setMetadata(metadataIn(text));
    setExpiry(expiryValue(body.expires_at));
    setStoredExpiry(expiryValue(body.expires_at));
    return body;
  }, docId);
  const save = useWork(async () => {
    jsonObject('the metadata', metadata);
    // The field has no fractions of seconds, so it is sent only if it has changed.
    const changed = expiry === storedExpiry ? undefined : expiresAt(expiry);
    const { text } = await api.changeDocument(indexId, docId, { field, metadata, expiresAt: changed });
    const stored = field === 'metadata' ? metadata : metadataIn(text);
    setMetadata(stored);
    setField('metadata');
    setStoredExpiry(expiry);
    return { metadata: stored, expiry };
  });
  const list = `#/indexes/${indexId}/documents`;
  const remove = useWork(async () => {
    await api.deleteDocument(indexId, docId);
    onDeleted();
    location.hash = list;
  });
  return (
    <section aria-label="Document">
      <p>
        <a href={list}>All documents</a>
      </p>
      <h2>{docId}</h2>
      <Failure of={document.failure} />
      {document.result !== undefined && (
        <>
          <dl class="facts">
            <Fact name="Chunks" value={String(document.result.chunk_count)} />
          </dl>
          <form onSubmit={submitted(save)}>
            <Field name="Metadata (JSON)">
              <textarea class="code" rows={8} readOnly={!mayChange} {...tied(metadata, setMetadata)} />
            </Field>
            {mayChange && <SavingChoice value={field} onChange={setField} />}
            <ExpiryField readOnly={!mayChange} value={expiry} onChange={setExpiry} />
            {mayChange && (
              <div class="row">
                <button type="submit" class="primary" disabled={save.busy}>
                  Save
                </button>
                <button type="button" class="danger" onClick={() => setAsked(true)}>
                  Delete the document
                </button>
                {save.result?.metadata === metadata && save.result.expiry === expiry && (
                  <span role="status">Saved</span>
                )}
              </div>
            )}
          </form>
          {asked && (
            <Asked
              name="Delete the document"
              text="The document is gone at once, and cannot be brought back."
              act="Delete"
              keep="Keep"
              busy={remove.busy}
              onAct={() => remove.start()}
              onKeep={() => setAsked(false)}
            />
          )}
          <Failure of={save.failure ?? remove.failure} />
        </>
      )}
    </section>
  );
}

type ChangedField = DocumentChange['field'];

function SavingChoice({ value, onChange }: { value: ChangedField; onChange: (field: ChangedField) => void }) {
  return (
    <Choice
      name="Saving"
      value={value}
      options={[
        ['metadata', 'replaces the stored metadata'],
        ['metadata_merge', 'merges into the stored metadata (null removes a field)'],
      ]}
      onChange={(chosen) => onChange(chosen as ChangedField)}
    />
  );
}

/** The metadata as they are stored: parsed and written again, `1.0` and long numbers would lose digits. */
function metadataIn(answer: string): string {
  const [, text = '{}'] = /^\{"doc_id":"(?:[^"\\]|\\.)*","metadata":(.*),"chunk_count":/s.exec(answer) ?? [];
  return text;
}
