/**
 * Groups consecutive lines into batches that fit one upsert request: at most 50 documents and 5 MiB of
 * body, no document identifier twice. A batch covers a whole range of lines, its unusable ones included,
 * so that progress is one number: the last line up to which everything is settled.
 */
import { type Line } from '../jsonl.ts';
import { isProblem, parseDocument, type DocumentProblem, type InputDocument } from './document.ts';

export interface Batch {
  /** Last line of the range; the range starts after the previous batch's. */
  readonly lastLine: number;
  readonly documents: readonly InputDocument[];
  readonly problems: readonly DocumentProblem[];
  /** Bytes of the input file that were read when the last line came out. */
  readonly fileBytesRead: number;
}

export interface BatchLimits {
  readonly documentsMax: number;
  readonly bodyBytesMax: number;
}

/** The bounds are those of the interface specification, section "Limits". */
export const requestLimits: BatchLimits = { documentsMax: 50, bodyBytesMax: 5 * 1024 * 1024 };

const envelopeBytes = Buffer.byteLength('{"documents":[]}');
/** A file of nothing but unusable lines still advances. */
const problemsMax = 1000;

/** Lines up to `afterLine` are passed over. */
export async function* batchLines(
  lines: AsyncIterable<Line>,
  afterLine: number,
  limits: BatchLimits = requestLimits,
): AsyncGenerator<Batch> {
  let documents: InputDocument[] = [];
  let problems: DocumentProblem[] = [];
  let docIds = new Set<string>();
  let bodyBytes = envelopeBytes;
  let lastLine = afterLine;
  let fileBytesRead = 0;
  const take = (): Batch => {
    const batch = { lastLine, documents, problems, fileBytesRead };
    documents = [];
    problems = [];
    docIds = new Set();
    bodyBytes = envelopeBytes;
    return batch;
  };
  for await (const line of lines) {
    if (line.number <= afterLine) continue;
    const item = sized(parseDocument(line), limits);
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
    lastLine = line.number;
    fileBytesRead = line.fileBytesRead;
    if (problems.length === problemsMax) yield take();
  }
  if (documents.length > 0 || problems.length > 0) yield take();
}

/** A document that no request can carry is a problem of its own. */
function sized(item: InputDocument | DocumentProblem, limits: BatchLimits): InputDocument | DocumentProblem {
  if (isProblem(item) || envelopeBytes + item.jsonBytes + 1 <= limits.bodyBytesMax) return item;
  return {
    line: item.line,
    docId: item.docId,
    error: `the document has ${item.jsonBytes} bytes as JSON, more than one request can carry`,
  };
}
