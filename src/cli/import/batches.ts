/**
 * Groups consecutive rows into batches that fit one upsert request: at most 50 documents and 5 MiB of
 * body, no document identifier twice. A batch covers a whole range of rows, its unusable ones included,
 * so that progress is one number: the last row up to which everything is settled.
 */
import { isProblem, type DocumentProblem, type ImportItem, type InputDocument } from './document.ts';

export interface Batch {
  /** Number of the last row; the range starts after the previous batch's. */
  readonly lastRow: number;
  readonly documents: readonly InputDocument[];
  readonly problems: readonly DocumentProblem[];
  /** Bytes of the input file that were read when the last line came out. */
  readonly bytesRead: number;
}

export interface BatchLimits {
  readonly documentsMax: number;
  readonly bodyBytesMax: number;
}

/** The bounds are those of the interface specification, section "Limits". */
export const requestLimits: BatchLimits = { documentsMax: 50, bodyBytesMax: 5 * 1024 * 1024 };

const envelopeBytes = Buffer.byteLength('{"documents":[]}');
/** An input of nothing but unusable rows still advances. */
const problemsMax = 1000;

/** Rows up to `afterRow` are passed over. */
export async function* batchDocuments(
  items: AsyncIterable<ImportItem>,
  afterRow: number,
  limits: BatchLimits = requestLimits,
): AsyncGenerator<Batch> {
  let documents: InputDocument[] = [];
  let problems: DocumentProblem[] = [];
  let docIds = new Set<string>();
  let bodyBytes = envelopeBytes;
  let file: string | undefined;
  let lastRow = afterRow;
  let bytesRead = 0;
  const take = (): Batch => {
    const batch = { lastRow, documents, problems, bytesRead };
    documents = [];
    problems = [];
    docIds = new Set();
    bodyBytes = envelopeBytes;
    return batch;
  };
  for await (const { number, item: read, bytesRead: bytes } of items) {
    if (number <= afterRow) continue;
    const item = sized(read, limits);
    // Problems are listed by line, so a batch keeps to one file.
    if (item.file !== file && file !== undefined && documents.length + problems.length > 0) yield take();
    file = item.file;
    if (isProblem(item)) {
      problems.push(item);
    } else {
      const full =
        documents.length === limits.documentsMax ||
        bodyBytes + item.jsonBytes + 1 > limits.bodyBytesMax ||
        docIds.has(item.docId);
      if (full) yield take();
      documents.push(item);
      docIds.add(item.docId);
      bodyBytes += item.jsonBytes + 1;
    }
    lastRow = number;
    bytesRead = bytes;
    if (problems.length === problemsMax) yield take();
  }
  if (documents.length > 0 || problems.length > 0) yield take();
}

/** A document that no request can carry is a problem of its own. */
function sized(item: InputDocument | DocumentProblem, limits: BatchLimits): InputDocument | DocumentProblem {
  if (isProblem(item) || envelopeBytes + item.jsonBytes + 1 <= limits.bodyBytesMax) return item;
  return {
    file: item.file,
    line: item.line,
    docId: item.docId,
    error: `the document has ${item.jsonBytes} bytes as JSON, more than one request can carry`,
  };
}
