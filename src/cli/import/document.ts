/**
 * Makes a document of a row. A row that the service would surely refuse is refused here, with its line number, without a
 * request. Further fields become metadata, unless the command line leaves them out. Both are counted. The title becomes
 * part of the text, and metadata too.
 */
import type { Document } from '../../../clients/typescript/src/types.ts';
import { documentText } from '../beir/directory.ts';
import { inputError } from '../failure.ts';
import { identifierText, isObject, parseJson } from '../json.ts';
import { DocIdSet } from './doc-id-set.ts';
import { idFields, type FieldChoice } from './fields.ts';
import type { Row } from './sources/source.ts';

interface Place {
  readonly file: string;
  readonly line: number;
}

export interface InputDocument extends Place {
  readonly docId: string;
  readonly document: Document;
}

export interface DocumentProblem extends Place {
  readonly docId: string | undefined;
  /** Names the problem, and never quotes the document. */
  readonly error: string;
}

/** A row as a document, or the problem with it. */
export interface ImportItem {
  readonly number: number;
  readonly bytesRead: number;
  readonly item: InputDocument | DocumentProblem;
}

const textBytesMax = 100 * 1024;
const docIdLengthMax = 255;
/** A longer title stays out of metadata, which has little room. */
const titleBytesMax = 1024;
/** Bounds the counted names, because each line may have a new one. */
const namesMax = 1000;
const repeatedKeptMax = 5;

export class DocumentReader {
  /** Field -> number of documents with it. */
  readonly sentAsMetadata = new Map<string, number>();
  readonly leftOut = new Map<string, number>();
  /** Documents whose identifier came before. The last document of an identifier stays. */
  repeated = 0;
  /** The first of these identifiers. */
  readonly repeatedDocIds = new Set<string>();
  rows = 0;
  readonly #choice: FieldChoice;
  readonly #docIds = new DocIdSet();

  constructor(choice: FieldChoice = {}) {
    this.#choice = choice;
  }

  read(row: Row): ImportItem {
    this.rows += 1;
    return { number: row.number, bytesRead: row.bytesRead, item: this.#documentOf(row) };
  }

  #documentOf({ file, line, parsed }: Row): InputDocument | DocumentProblem {
    if ('problem' in parsed) return { file, line, docId: undefined, error: parsed.problem };
    const { object } = parsed;
    const [idField, id] = identifierIn(object, this.#choice.id);
    const docId = identifierText(id);
    const problem = (error: string): DocumentProblem => ({ file, line, docId, error });
    if (id === undefined || id === null) return problem(`no ${this.#choice.id ?? 'doc_id, _id or id'}`);
    if (docId === undefined) return problem('the identifier must be a string or an integer');
    const docIdLength = Array.from(docId).length;
    if (docIdLength < 1 || docIdLength > docIdLengthMax)
      return problem(`the identifier has ${docIdLength} characters, 1 to ${docIdLengthMax} are allowed`);
    const textField = this.#choice.text ?? 'text';
    const title = textField === 'title' ? '' : (object['title'] ?? '');
    const text = object[textField] ?? '';
    if (typeof text !== 'string' || typeof title !== 'string')
      return problem('title and text must be strings');
    const fullText = documentText(title, text);
    if (fullText === '') return problem('the text is empty');
    const textBytes = Buffer.byteLength(fullText);
    if (textBytes > textBytesMax)
      return problem(`the text has ${textBytes} bytes, ${textBytesMax} are allowed`);
    const given = metadataOf(object['metadata']);
    if (given === undefined) return problem('metadata must be an object, or the JSON text of one');
    const further = Object.entries(object).filter(
      ([name]) =>
        name !== idField && name !== textField && name !== 'metadata' && (name !== 'title' || title !== ''),
    );
    const metadata = {
      ...Object.fromEntries(further.filter((field) => this.#takes(field, given))),
      ...given,
    };
    if (this.#docIds.add(docId)) {
      this.repeated += 1;
      if (this.repeatedDocIds.size < repeatedKeptMax) this.repeatedDocIds.add(docId);
    }
    return { file, line, docId, document: { doc_id: docId, text: fullText, metadata } };
  }

  /** A key of the `metadata` field wins over a field of the same name. */
  #takes([name, value]: readonly [string, unknown], given: Readonly<Record<string, unknown>>): boolean {
    const isChosen = this.#choice.metadata?.includes(name) ?? true;
    const isText = name === 'title' && Buffer.byteLength(value as string) > titleBytesMax;
    const takes = isChosen && !isText && !Object.hasOwn(given, name);
    const counts = takes ? this.sentAsMetadata : this.leftOut;
    const counted = counts.has(name) || counts.size < namesMax ? name : '(further names)';
    counts.set(counted, (counts.get(counted) ?? 0) + 1);
    return takes;
  }
}

/** The field and its value. */
function identifierIn(
  object: Readonly<Record<string, unknown>>,
  chosen: string | undefined,
): readonly [string | undefined, unknown] {
  const field = chosen ?? idFields.find((name) => object[name] !== undefined && object[name] !== null);
  return [field, field === undefined ? undefined : object[field]];
}

/** In CSV files, metadata is JSON text. */
function metadataOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  let object = value ?? {};
  if (typeof object === 'string') {
    try {
      object = parseJson(object) ?? {};
    } catch {
      return undefined;
    }
  }
  return isObject(object) ? object : undefined;
}

export function isProblem(item: InputDocument | DocumentProblem): item is DocumentProblem {
  return 'error' in item;
}

const rowsLookedAtMax = 100;

/**
 * Returns the same items if one of the first is a document. Otherwise the format was most likely misjudged, and a
 * `CommandFailure` reports the first problem.
 */
export async function lookAhead(
  items: AsyncGenerator<ImportItem>,
  name: string,
): Promise<AsyncGenerator<ImportItem>> {
  const head: ImportItem[] = [];
  let ended = false;
  while (!ended && head.length < rowsLookedAtMax && head.every(({ item }) => isProblem(item))) {
    const next = await items.next();
    if (next.done === true) ended = true;
    else head.push(next.value);
  }
  if (head.every(({ item }) => isProblem(item))) {
    await items.return(undefined);
    const [first] = head;
    throw inputError(
      first === undefined || !isProblem(first.item)
        ? `${name} holds no document`
        : `${name} holds no document in its first ${head.length} lines; line ${first.item.line}: ${first.item.error} (--format, --id-field and --text-field say what to expect)`,
    );
  }
  return (async function* whole() {
    yield* head;
    yield* items;
  })();
}
