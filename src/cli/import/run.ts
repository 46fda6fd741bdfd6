/**
 * Sends the documents of an import with the client's `import`, and keeps count of the rows that they came from. The client
 * settles documents in the order of the input. A row that is no document is settled with the document before it, so the
 * position is always a prefix of the input.
 */
import type { Maxsimd } from '../../../clients/typescript/src/client.ts';
import { ImportError } from '../../../clients/typescript/src/errors.ts';
import type { ImportBatch, ImportDocument } from '../../../clients/typescript/src/import/import.ts';
import { problemsKeptMax, type ImportPosition } from './checkpoint.ts';
import { isProblem, type DocumentProblem, type ImportItem, type InputDocument } from './document.ts';
import { addTokens, tokensOf } from './token-tally.ts';

export interface ImportRun {
  readonly client: Maxsimd;
  readonly indexId: string;
  readonly items: AsyncIterable<ImportItem>;
  readonly concurrency: number;
  readonly keepText: string | undefined;
  /** The metadata field that gets the words that look like identifiers. */
  readonly identifiers: string | undefined;
  /** Whether long documents are cut, and at how many bytes. */
  readonly cut: boolean | number;
  readonly start: ImportPosition;
  /** Ends the import with its reason, and abandons the requests that are under way. */
  readonly signal: AbortSignal;
  /** Is told how many documents the client has taken, those of an earlier run included. */
  readonly onTaken: (documents: number) => void;
  readonly onSettled: (settled: SettledRows) => void;
}

export interface SettledRows {
  readonly position: ImportPosition;
  /** The first rows that were not stored. */
  readonly problems: readonly DocumentProblem[];
  /** Bytes of the input that were read when the last row came out. */
  readonly bytesRead: number;
}

/** A document, and the rows behind it that are no documents. The first stretch has no document. */
interface Stretch {
  readonly document: InputDocument | undefined;
  /** The first of these rows. */
  readonly problems: DocumentProblem[];
  failed: number;
  lastRow: number;
  bytesRead: number;
}

/** So many unusable rows at the beginning are settled without a document. */
const problemsUnsettledMax = 1000;

/**
 * Returns how many documents were deleted because the cutting left them behind. Rejects with the first failure that ends the
 * import, or with the signal's reason.
 */
export async function runImport(run: ImportRun): Promise<number> {
  const rows = new UnsettledRows(run.start, run.onSettled);
  try {
    const { deleted } = await run.client.import(run.indexId, documentsOf(run, rows), {
      concurrency: run.concurrency,
      ...(run.keepText !== undefined && { keepText: run.keepText }),
      ...(run.identifiers !== undefined && { identifiers: run.identifiers }),
      cut: run.cut,
      resumed: { settled: run.start.documents, failed: run.start.failed },
      signal: run.signal,
      onProgress: ({ settled, batch }) => rows.settle(settled, batch),
    });
    rows.settleEnd();
    return deleted;
  } catch (error) {
    throw error instanceof ImportError ? error.cause : error;
  }
}

async function* documentsOf(
  { items, start, onTaken }: ImportRun,
  rows: UnsettledRows,
): AsyncGenerator<ImportDocument> {
  let taken = 0;
  for await (const item of items) {
    if (item.number > start.rows) rows.add(item);
    if (isProblem(item.item)) continue;
    taken += 1;
    onTaken(taken);
    yield item.item.document;
  }
}

class UnsettledRows {
  readonly #onSettled: ImportRun['onSettled'];
  #stretches: Stretch[];
  #position: ImportPosition;
  #documentsSettled: number;
  /** Id of a document -> why it, or a part of it, was refused. Parts can be refused before their document is settled. */
  readonly #errors = new Map<string, string>();

  constructor(start: ImportPosition, onSettled: ImportRun['onSettled']) {
    this.#position = start;
    this.#documentsSettled = start.documents;
    this.#onSettled = onSettled;
    this.#stretches = [stretchOf(undefined, start.rows, 0)];
  }

  add({ number, bytesRead, item }: ImportItem): void {
    if (!isProblem(item)) {
      this.#stretches.push(stretchOf(item, number, bytesRead));
      return;
    }
    const last = this.#stretches.at(-1)!;
    if (last.problems.length < problemsKeptMax) last.problems.push(item);
    last.failed += 1;
    last.lastRow = number;
    last.bytesRead = bytesRead;
    if (this.#stretches.length === 1 && last.failed === problemsUnsettledMax) this.settleEnd();
  }

  /** Settles the first so many documents, with the rows behind them. */
  settle(documents: number, { failed, answer }: ImportBatch): void {
    const settled = this.#stretches.splice(0, documents - this.#documentsSettled + 1);
    const { lastRow, bytesRead } = settled.at(-1)!;
    this.#stretches.unshift(stretchOf(undefined, lastRow, bytesRead));
    this.#documentsSettled = documents;
    for (const { doc_id: docId, part_of: partOf, error } of failed)
      this.#errors.set(partOf ?? docId, partOf === undefined ? error : `${docId}: ${error}`);
    const problems = settled.flatMap((stretch) => [...this.#refusalOf(stretch), ...stretch.problems]);
    const unusable = settled.reduce((sum, stretch) => sum + stretch.failed, 0);
    this.#position = {
      rows: lastRow,
      documents,
      done: this.#position.done + (answer?.upserted_documents ?? 0),
      failed: this.#position.failed + unusable + failed.length,
      tokens: addTokens(this.#position.tokens, tokensOf(answer)),
    };
    this.#onSettled({ position: this.#position, problems, bytesRead });
  }

  /** The document of the stretch, if it, or a part of it, was refused. */
  #refusalOf({ document }: Stretch): readonly DocumentProblem[] {
    if (document === undefined) return [];
    const { file, line, docId } = document;
    const error = this.#errors.get(docId);
    this.#errors.delete(docId);
    return error === undefined ? [] : [{ file, line, docId, error }];
  }

  /** Settles the rows that no document follows. */
  settleEnd(): void {
    if (this.#stretches[0]?.failed !== 0)
      this.settle(this.#documentsSettled, { failed: [], answer: undefined });
  }
}

function stretchOf(document: InputDocument | undefined, lastRow: number, bytesRead: number): Stretch {
  return { document, problems: [], failed: 0, lastRow, bytesRead };
}
