/**
 * From a row of the input to the JSON text of a document input. What the service would refuse for sure
 * is refused here, with its line number, without spending a request on it. Fields that a document has no place
 * for become metadata, or are left out where the command line says so; either way they are counted.
 */
import { documentText } from '../beir/directory.ts';
import { CommandFailure } from '../failure.ts';
import { isObject } from '../json.ts';
import { DocIdSet } from './doc-id-set.ts';
import type { RowFile } from './sources/row-file.ts';
import type { Row } from './sources/source.ts';

interface Place {
  readonly file: string;
  readonly line: number;
}

export interface InputDocument extends Place {
  readonly docId: string;
  /** JSON text of `{doc_id, text, metadata?}`. */
  readonly json: string;
  readonly jsonBytes: number;
}

export interface DocumentProblem extends Place {
  readonly docId: string | undefined;
  /** Names what is wrong; never quotes the document. */
  readonly error: string;
}

/** A row, read. */
export interface ImportItem {
  readonly number: number;
  readonly bytesRead: number;
  readonly item: InputDocument | DocumentProblem;
}

/** Names of fields, where they are not those expected. */
export interface FieldChoice {
  readonly id?: string | undefined;
  readonly text?: string | undefined;
  /** Further fields that become metadata; absent: all. */
  readonly metadata?: readonly string[] | undefined;
}

const textBytesMax = 100 * 1024;
const docIdLengthMax = 255;
const idFields = ['doc_id', '_id', 'id'];
/** Names counted one by one; an input may have a new one in each line. */
const namesMax = 1000;
const repeatedKeptMax = 5;

export class DocumentReader {
  /** Field -> documents that had it. */
  readonly sentAsMetadata = new Map<string, number>();
  readonly leftOut = new Map<string, number>();
  /** Documents whose identifier another had before; the last one stays. */
  repeated = 0;
  /** The first of them. */
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
    const [idField, docId] = identifierIn(object, this.#choice.id);
    const problem = (error: string): DocumentProblem => ({ file, line, docId, error });
    if (docId === undefined) return problem(`no ${this.#choice.id ?? 'doc_id, _id or id'}`);
    const docIdLength = Array.from(docId).length;
    if (docIdLength < 1 || docIdLength > docIdLengthMax) {
      return problem(`the identifier has ${docIdLength} characters, 1 to ${docIdLengthMax} are allowed`);
    }
    const textField = this.#choice.text ?? 'text';
    const title = object['title'] ?? '';
    const text = object[textField] ?? '';
    if (typeof text !== 'string' || typeof title !== 'string')
      return problem('title and text must be strings');
    const fullText = documentText(title, text);
    if (fullText === '') return problem('the text is empty');
    const textBytes = Buffer.byteLength(fullText);
    if (textBytes > textBytesMax)
      return problem(`the text has ${textBytes} bytes, ${textBytesMax} are allowed`);
    const given = object['metadata'] ?? {};
    if (!isObject(given)) return problem('metadata must be an object');
    const further = Object.entries(object).filter(
      ([name]) => name !== idField && name !== textField && name !== 'title' && name !== 'metadata',
    );
    const metadata = {
      ...Object.fromEntries(further.filter(([name]) => this.#takes(name, given))),
      ...given,
    };
    if (this.#docIds.add(docId)) {
      this.repeated += 1;
      if (this.repeatedDocIds.size < repeatedKeptMax) this.repeatedDocIds.add(docId);
    }
    const json = JSON.stringify({ doc_id: docId, text: fullText, metadata });
    return { file, line, docId, json, jsonBytes: Buffer.byteLength(json) };
  }

  /** Metadata that was given as such goes before a field of the same name. */
  #takes(name: string, given: Readonly<Record<string, unknown>>): boolean {
    const takes = (this.#choice.metadata?.includes(name) ?? true) && !Object.hasOwn(given, name);
    const counts = takes ? this.sentAsMetadata : this.leftOut;
    const counted = counts.has(name) || counts.size < namesMax ? name : '(further names)';
    counts.set(counted, (counts.get(counted) ?? 0) + 1);
    return takes;
  }
}

/** Refuses a file whose columns are fixed when no document can come of them. */
export function assertColumns({ name, columns }: RowFile, choice: FieldChoice): void {
  if (columns === undefined) return;
  const list = columns.map((column) => JSON.stringify(column)).join(', ');
  const missing = (what: string, option: string): CommandFailure =>
    new CommandFailure(
      'input_error',
      `${name} has no column ${what}, but ${list}: choose one with ${option} NAME`,
    );
  const ids = choice.id === undefined ? idFields : [choice.id];
  if (!ids.some((field) => columns.includes(field))) throw missing(ids.join(', '), '--id-field');
  const texts = choice.text === undefined ? ['text', 'title'] : [choice.text];
  if (!texts.some((field) => columns.includes(field))) throw missing(choice.text ?? 'text', '--text-field');
}

/** The field and its value; identifiers are strings, some exports write them as numbers. */
function identifierIn(
  object: Readonly<Record<string, unknown>>,
  chosen: string | undefined,
): readonly [string | undefined, string | undefined] {
  const field = chosen ?? idFields.find((name) => object[name] !== undefined && object[name] !== null);
  const value = field === undefined ? undefined : object[field];
  if (typeof value === 'string') return [field, value];
  return [field, typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined];
}

export function isProblem(item: InputDocument | DocumentProblem): item is DocumentProblem {
  return 'error' in item;
}

const rowsLookedAtMax = 100;

/**
 * The same items, when a document is among the first of them; otherwise the input is something else than it was taken
 * for, and a `CommandFailure` says so with the first problem.
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
    throw new CommandFailure(
      'input_error',
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
