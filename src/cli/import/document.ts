/**
 * Makes a document of a row. A row that the service would surely refuse is refused here, with its line number, without a
 * request. Further fields become metadata, unless the command line leaves them out. Both are counted. The title becomes
 * part of the text, and metadata too. `expires_at` is no metadata: the document expires then.
 */
import { hash } from 'node:crypto';
import { cuttingOf, partsOf, type Cutting } from '../../../clients/typescript/src/import/cut.ts';
import { MaxsimdError } from '../../../clients/typescript/src/errors.ts';
import type { ImportDocument } from '../../../clients/typescript/src/import/import.ts';
import { addedNames } from '../../../clients/typescript/src/import/metadata.ts';
import { requestPart } from '../../../clients/typescript/src/import/request-part.ts';
import { alternatives } from '../../input/issue-words.ts';
import { instantOf } from '../../index/terms/instant.ts';
import { documentText } from '../beir/directory.ts';
import { identifierText, isObject, isRawJson, parseGivenJson, RepeatedNameError } from '../json.ts';
import { DocIdSet } from './doc-id-set.ts';
import { namesIn } from './exports/export.ts';
import { libraries } from './exports/exports.ts';
import { metadataDepthMax } from './exports/export.ts';
import { expiryField, idFieldsOf, type FieldChoice } from './fields.ts';
import { leanMetadata } from './lean-metadata.ts';
import { fieldsOfRow, type RowFields } from './row-fields.ts';
import type { Place } from './sources/row-file.ts';
import type { Row } from './sources/source.ts';
import { textFieldsIn } from './texts-in.ts';

export interface InputDocument extends Place {
  readonly docId: string;
  readonly document: ImportDocument & { readonly expires_at?: string };
  /** `undefined` = the identifier was made of the content. */
  readonly idField: string | undefined;
  readonly textFields: readonly string[];
  /** All fields of the row, if its title is its whole text. */
  readonly besideTitle: Readonly<Record<string, unknown>> | undefined;
  /** Documents that it is sent as. */
  readonly parts: number;
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
  /** The library that may have written it, which is told if no row is a document. */
  readonly hint?: string | undefined;
  readonly item: InputDocument | DocumentProblem;
}

const textBytesMax = 100 * 1024;
const docIdLengthMax = 255;
const metadataBytesMax = 16 * 1024;
/** A longer title stays out of metadata, which has little room. */
const titleBytesMax = 1024;
/** Bounds the counted names, because each line may have a new one. */
const namesMax = 1000;
const repeatedKeptMax = 5;
const placesKeptMax = 5;

export class DocumentReader {
  /** Field -> number of documents with it. */
  readonly sentAsMetadata = new Map<string, number>();
  readonly leftOut = new Map<string, number>();
  /** Arrays of many numbers, which were left out. */
  readonly arraysLeftOut = new Map<string, number>();
  /** Documents whose identifier came before. The last document of an identifier stays. */
  repeated = 0;
  /** The first of these identifiers. */
  readonly repeatedDocIds = new Set<string>();
  /** Remark -> number of rows with it, and the first of them. */
  readonly remarks = new Map<string, { rows: number; readonly places: Place[] }>();
  /** Documents that are cut, and the parts of all of them. */
  readonly cut = { documents: 0, parts: 0 };
  /** Words that look like identifiers, which the client adds to metadata: documents with some, words, and words without room. */
  readonly identifiers = { documents: 0, words: 0, leftOut: 0 };
  /** Documents that expire, and those of them whose time was over when they were read. */
  readonly expiring = { documents: 0, over: 0 };
  rows = 0;
  readonly #choice: FieldChoice;
  readonly #cutting: Cutting | undefined;
  readonly #docIds = new DocIdSet();

  constructor(choice: FieldChoice = {}) {
    addedNames(choice);
    const { from, metadata } = choice;
    this.#choice =
      from === undefined
        ? choice
        : { ...choice, metadata: metadata?.flatMap((name) => namesIn(libraries[from], name)) };
    this.#cutting = cuttingOf(choice);
  }

  read(row: Row): ImportItem {
    this.rows += 1;
    this.#countRemark(row);
    const { number, bytesRead, hint } = row;
    return { number, bytesRead, hint, item: this.#documentOf(row) };
  }

  #documentOf({ file, line, parsed, hasColumns }: Row): InputDocument | DocumentProblem {
    if ('problem' in parsed) return { file, line, docId: undefined, error: parsed.problem };
    const fields = fieldsOfRow(parsed.object, this.#choice, hasColumns === true);
    if ('problem' in fields) return { file, line, docId: undefined, error: fields.problem };
    const { idField, title, textField } = fields;
    const text = fields.text ?? '';
    const givenId = identifierText(fields.id);
    const problem = (error: string): DocumentProblem => ({ file, line, docId: givenId, error });
    if (idField === undefined && this.#choice.autoId !== true) return problem(problemOfNoId(this.#choice));
    const idError = idField === undefined ? undefined : problemOfId(givenId);
    if (idError !== undefined) return problem(idError);
    if (typeof text !== 'string' || typeof title !== 'string')
      return problem('title and text must be strings');
    const fullText = documentText(title, text);
    const textError = problemOfText(fullText, this.#cutting !== undefined, fields);
    if (textError !== undefined) return problem(textError);
    const given = metadataOf(fields.metadata);
    if (given === undefined) return problem('metadata must be an object, or the JSON text of one');
    if (given instanceof RepeatedNameError) return problem(`metadata: ${given.message}`);
    const expiry = expiryOf(fields.expiresAt);
    if (expiry === 'wrong') return problem(wrongExpiry);
    const taken = Object.entries(fields.further).filter((field) => this.#takes(field, title, given));
    const whole = { ...Object.fromEntries(taken), ...given };
    if (!nestsAtMost(whole, metadataDepthMax))
      return problem(`metadata must nest at most ${metadataDepthMax} levels`);
    const { keepText } = this.#choice;
    const { arrays, repeats, metadata } = leanMetadata(whole, {
      text,
      textField,
      given,
      kept: this.#choice.metadata ?? [],
    });
    const sent = taken.map(([name]) => name).filter((name) => !arrays.has(name) && !repeats.has(name));
    if (keepText !== undefined && !sent.includes(keepText)) sent.push(keepText);
    for (const name of sent) count(this.sentAsMetadata, name);
    for (const name of repeats) count(this.leftOut, name);
    for (const name of [...fields.vectors, ...arrays]) count(this.arraysLeftOut, name);
    this.#countRemark({ file, line, remark: fields.remark });
    const docId = givenId ?? identifierOfContent(fullText, metadata);
    const document = { doc_id: docId, text: fullText, metadata, ...expiry };
    const parts = partsOf(document, this.#cutting);
    if (parts instanceof MaxsimdError) return problem(parts.message);
    const metadataError = parts.length > 1 ? undefined : problemOfMetadata(document, this.#choice);
    if (metadataError !== undefined) return problem(metadataError);
    this.#countCut(parts.length);
    this.#countIdentifiers(parts);
    this.#countRepeated(docId);
    this.#countExpiring(expiry);
    const textFields = [...(title === '' ? [] : ['title']), ...(text === '' ? [] : [textField])];
    const besideTitle = text === '' ? { ...fields.further, ...given } : undefined;
    return { file, line, docId, document, idField, textFields, besideTitle, parts: parts.length };
  }

  #countCut(parts: number): void {
    if (parts === 1) return;
    this.cut.documents += 1;
    this.cut.parts += parts;
  }

  #countIdentifiers(parts: readonly ImportDocument[]): void {
    const field = this.#choice.identifiers;
    if (field === undefined) return;
    let words = 0;
    for (const part of parts) {
      const sent = requestPart(part, this.#choice);
      if (sent instanceof MaxsimdError) continue;
      words += sent.identifiers.kept;
      this.identifiers.leftOut += sent.identifiers.leftOut;
    }
    if (words === 0) return;
    this.identifiers.documents += 1;
    this.identifiers.words += words;
    count(this.sentAsMetadata, field);
  }

  #countExpiring({ expires_at: time }: Expiry): void {
    if (time === undefined) return;
    this.expiring.documents += 1;
    if (Date.parse(time) <= Date.now()) this.expiring.over += 1;
  }

  #countRemark({ file, line, remark }: Pick<Row, 'file' | 'line' | 'remark'>): void {
    if (remark === undefined) return;
    const counted = this.remarks.get(remark) ?? { rows: 0, places: [] };
    counted.rows += 1;
    if (counted.places.length < placesKeptMax) counted.places.push({ file, line });
    this.remarks.set(remark, counted);
  }

  #countRepeated(docId: string): void {
    if (!this.#docIds.add(docId)) return;
    this.repeated += 1;
    if (this.repeatedDocIds.size < repeatedKeptMax) this.repeatedDocIds.add(docId);
  }

  /** A key of the `metadata` field wins over a field of the same name. */
  #takes(
    [name]: readonly [string, unknown],
    title: string,
    given: Readonly<Record<string, unknown>>,
  ): boolean {
    const isChosen = this.#choice.metadata?.includes(name) ?? true;
    const isText = name === 'title' && Buffer.byteLength(title) > titleBytesMax;
    const takes = isChosen && !isText && !Object.hasOwn(given, name);
    if (!takes) count(this.leftOut, name);
    return takes;
  }
}

function count(counts: Map<string, number>, name: string): void {
  const counted = counts.has(name) || counts.size < namesMax ? name : '(further names)';
  counts.set(counted, (counts.get(counted) ?? 0) + 1);
}

interface Expiry {
  readonly expires_at?: string;
}

const wrongExpiry = `${expiryField} must be a time such as 2027-01-31T00:00:00Z; --metadata-fields with this name makes it metadata`;

/** In UTC. Documents that follow each other with one time share requests, however the time is written. */
function expiryOf(value: unknown): Expiry | 'wrong' {
  if (value === undefined || value === null) return {};
  const instant = typeof value === 'string' ? instantOf(value) : undefined;
  return instant === undefined
    ? 'wrong'
    : { expires_at: new Date(Number(instant / 1_000_000n)).toISOString() };
}

/** The same text with the same metadata has the same identifier, so importing it again replaces it. */
function identifierOfContent(text: string, metadata: Readonly<Record<string, unknown>>): string {
  return hash('sha256', JSON.stringify([text, metadata])).slice(0, 32);
}

function problemOfNoId(choice: FieldChoice): string {
  if (choice.from !== undefined && choice.id === undefined)
    return 'no identifier: --auto-id makes one of the content';
  return `no ${alternatives(idFieldsOf(choice))}`;
}

function problemOfId(docId: string | undefined): string | undefined {
  if (docId === undefined) return 'the identifier must be a string or an integer';
  const length = Array.from(docId).length;
  if (length < 1 || length > docIdLengthMax)
    return `the identifier has ${length} characters, 1 to ${docIdLengthMax} are allowed`;
  if (!docId.isWellFormed()) return 'the identifier must be well-formed Unicode';
  return docId === '.' || docId === '..' ? 'the identifier must not be "." or ".."' : undefined;
}

function problemOfText(text: string, isCut: boolean, fields: RowFields): string | undefined {
  if (text.trim() === '') return problemOfNoText(fields);
  const bytes = Buffer.byteLength(text);
  return isCut || bytes <= textBytesMax
    ? undefined
    : `the text has ${bytes} bytes, ${textBytesMax} are allowed: --cut makes several documents of it`;
}

function problemOfNoText({ further, metadata }: RowFields): string {
  const names = textFieldsIn({ ...further, ...(isObject(metadata) && { metadata }) });
  if (names.length === 0) return 'the text is empty';
  const list = alternatives(names.map((name) => JSON.stringify(name)));
  return `there is no text; --text-field takes another field, such as ${list}`;
}

/** Names of fields that the import adds, if it does. */
function problemOfMetadata(
  { metadata, text }: { readonly metadata: Readonly<Record<string, unknown>>; readonly text: string },
  { keepText, identifiers }: FieldChoice,
): string | undefined {
  for (const [option, name] of [
    ['--keep-text', keepText],
    ['--identifiers', identifiers],
  ] as const)
    if (name !== undefined && Object.hasOwn(metadata, name))
      return `the row has a field ${JSON.stringify(name)} of its own: ${option} needs another name`;
  const kept = keepText === undefined ? {} : { [keepText]: text };
  const bytes = Buffer.byteLength(JSON.stringify({ ...metadata, ...kept }));
  if (bytes <= metadataBytesMax) return undefined;
  return keepText === undefined
    ? `the metadata has ${bytes} bytes, ${metadataBytesMax} are allowed: --metadata-fields chooses its fields`
    : `the metadata with the text has ${bytes} bytes, ${metadataBytesMax} are allowed: --cut makes several documents of it, --metadata-fields chooses its fields`;
}

function nestsAtMost(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null || isRawJson(value)) return true;
  return levels > 0 && Object.values(value).every((inner) => nestsAtMost(inner, levels - 1));
}

/** In CSV files, metadata is JSON text. */
function metadataOf(value: unknown): Readonly<Record<string, unknown>> | RepeatedNameError | undefined {
  let object = value ?? {};
  if (typeof object === 'string') {
    try {
      object = parseGivenJson(object) ?? {};
    } catch (error) {
      return error instanceof RepeatedNameError ? error : undefined;
    }
  }
  return isObject(object) ? object : undefined;
}

export function isProblem(item: InputDocument | DocumentProblem): item is DocumentProblem {
  return 'error' in item;
}
