/** Stores documents from files or from what a person pastes, in batches, and shows how far it is. */
import type { TargetedEvent } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Api, DocumentFailure } from '../api.ts';
import { ApiFailure } from '../connection.ts';
import { ColumnsEditor, columnsAmong } from './columns-editor.tsx';
import { columnsIn, documentsIn, pastedName, type Columns, type Source } from './document-source.ts';
import { Failure } from '../parts/failure.tsx';
import { ExpiryField, Field, expiresAt, submitted, tied } from '../parts/field.tsx';
import { many } from '../format.ts';
import { useLoaded, useWork } from '../work.ts';

/** Bounds of a batch: those of a request, with room to spare. */
const batchDocuments = 50;
const batchCharacters = 1_000_000;
const shownFailures = 20;
const shownUnknown = 5;

interface Progress {
  readonly total: number;
  readonly stored: number;
  readonly failed: readonly DocumentFailure[];
  /** Ids of stored documents with text that the model does not know. */
  readonly unknown: readonly string[];
}

export function Upload({ api, indexId, onStored }: { api: Api; indexId: string; onStored: () => void }) {
  const [pasted, setPasted] = useState('');
  const [files, setFiles] = useState<Promise<readonly Source[]>>(noFiles);
  const [columns, setColumns] = useState<Columns>({});
  const [expiry, setExpiry] = useState('');
  const [progress, setProgress] = useState<Progress>();
  const stopped = useRef(false);
  const all = async (): Promise<readonly Source[]> => [
    ...(await files),
    ...(pasted.trim() === '' ? [] : [{ name: pastedName, text: pasted }]),
  ];
  // A text that is not whole yet has no columns. The upload says what is wrong with it.
  const names = useLoaded(async () => columnsIn(await all()), files, pasted);
  const upload = useWork(async () => {
    stopped.current = false;
    const sources = await all();
    const chosen = columnsAmong(columnsIn(sources), columns);
    const documents = sources.flatMap((source) => documentsIn(source, chosen));
    if (documents.length === 0)
      throw new Error('There is nothing to upload: choose files, or paste documents.');
    let now: Progress = { total: documents.length, stored: 0, failed: [], unknown: [] };
    setProgress(now);
    for (const batch of batchesOf(documents)) {
      if (stopped.current) break;
      const stored = await storeBatch({ api, indexId, expiry: expiresAt(expiry) }, batch);
      now = { total: now.total, ...together(now, stored) };
      setProgress(now);
    }
    onStored();
  });
  return (
    <details>
      <summary>Add documents</summary>
      <form class="panel" aria-label="Add documents" onSubmit={submitted(upload)}>
        <Field name="Files: JSONL, CSV with a header, or text">
          <input
            type="file"
            multiple
            onChange={({ currentTarget }: TargetedEvent<HTMLInputElement>) =>
              setFiles(sourcesIn([...(currentTarget.files ?? [])]))
            }
          />
        </Field>
        <Field name="Or paste: JSON lines, CSV, or one text">
          <textarea class="code" rows={4} {...tied(pasted, setPasted)} />
        </Field>
        {names.result !== undefined && names.result.length > 0 && (
          <ColumnsEditor names={names.result} value={columns} onChange={setColumns} />
        )}
        <p class="quiet">
          You choose which columns of CSV or JSON lines hold ids and texts. All others become metadata. A
          document that exists is replaced.
        </p>
        <ExpiryField value={expiry} onChange={setExpiry} />
        <div class="row">
          <button type="submit" class="primary" disabled={upload.busy}>
            Upload
          </button>
          {upload.busy && (
            <button type="button" onClick={() => (stopped.current = true)}>
              Stop
            </button>
          )}
        </div>
        <Failure of={upload.failure} />
        {progress !== undefined && <Shown of={progress} />}
      </form>
    </details>
  );
}

const noFiles = Promise.resolve<readonly Source[]>([]);

function sourcesIn(files: readonly File[]): Promise<readonly Source[]> {
  return Promise.all(files.map(async (file) => ({ name: file.name, text: await file.text() })));
}

function Shown({ of: { total, stored, failed, unknown } }: { of: Progress }) {
  return (
    <>
      <progress aria-label="Upload" max={total} value={stored + failed.length} />
      <p role="status">
        {stored} of {many(total, 'document')} stored
        {failed.length > 0 && `, ${failed.length} refused`}
      </p>
      {unknown.length > 0 && (
        <p>
          {many(unknown.length, 'document has', 'documents have')} text that the model does not know, such as
          another script or emoji ({unknown.slice(0, shownUnknown).join(', ')}
          {unknown.length > shownUnknown && ', …'}). A search cannot tell such texts apart. Another model may.
        </p>
      )}
      {failed.length > 0 && (
        <ul class="failure">
          {failed.slice(0, shownFailures).map(({ doc_id: docId, error }, at) => (
            <li key={at}>
              {docId}: {error}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function batchesOf(documents: readonly string[]): readonly (readonly string[])[] {
  const batches: string[][] = [];
  let characters = Infinity;
  for (const document of documents) {
    const last = batches.at(-1);
    if (
      last === undefined ||
      last.length === batchDocuments ||
      characters + document.length > batchCharacters
    ) {
      batches.push([document]);
      characters = 0;
    } else last.push(document);
    characters += document.length;
  }
  return batches;
}

type Stored = Omit<Progress, 'total'>;

/** Waits for as long as a limit asks. If a batch is refused as a whole, its documents are sent alone, to tell which is wrong. */
async function storeBatch(
  target: { readonly api: Api; readonly indexId: string; readonly expiry: string | null },
  batch: readonly string[],
): Promise<Stored> {
  try {
    const { body } = await target.api.upsert(target.indexId, batch, target.expiry);
    const unknown = body.unknown_tokens?.map(({ doc_id: docId }) => docId) ?? [];
    return { stored: body.upserted_documents, failed: body.failed, unknown };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.retryAfter !== undefined && error.retryAfter <= 60) {
      const ms = 1_000 * error.retryAfter;
      await new Promise((resolve) => setTimeout(resolve, ms));
      return storeBatch(target, batch);
    }
    if (error.status !== 422) throw error;
    if (batch.length === 1)
      return { stored: 0, failed: [{ doc_id: nameOf(batch[0]), error: error.message }], unknown: [] };
    let sum: Stored = { stored: 0, failed: [], unknown: [] };
    for (const document of batch) sum = together(sum, await storeBatch(target, [document]));
    return sum;
  }
}

function together(one: Stored, other: Stored): Stored {
  return {
    stored: one.stored + other.stored,
    failed: [...one.failed, ...other.failed],
    unknown: [...one.unknown, ...other.unknown],
  };
}

function nameOf(document = '{}'): string {
  const { doc_id: docId } = JSON.parse(document) as { readonly doc_id?: unknown };
  return typeof docId === 'string' ? docId : 'a document without doc_id';
}
