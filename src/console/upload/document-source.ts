/** Documents in a file, as the JSON texts that an upsert takes: JSON lines, CSV with a header, or one text. */
import { jsonObject } from '../parts/json-object.ts';

export interface Source {
  readonly name: string;
  readonly text: string;
}

/** Pasted text may have any of the forms. */
export const pastedName = 'pasted';
const own = new Set(['doc_id', 'text', 'metadata']);
const idFields = ['doc_id', '_id', 'id'];
const textField = 'text';
/** Metadata of this name heads a result. */
const titleField = 'title';
/** Columns of JSON lines are those of the first lines. */
const sampledLines = 100;

/** The columns of a document's parts. Absent = the usual one. All other columns become metadata. */
export interface Columns {
  readonly id?: string | undefined;
  readonly text?: string | undefined;
  readonly title?: string | undefined;
}

/** The columns of the sources; none for a text. Throws an error that says what is wrong. */
export function columnsIn(sources: readonly Source[]): readonly string[] {
  const names = sources.flatMap((source) => {
    if (!isJsonLines(source)) return headerOf(tableIn(source) ?? []);
    return [...linesOf(source, sampledLines)].flatMap(({ fields }) => Object.keys(fields));
  });
  return [...new Set(names)].filter((name) => name !== 'metadata');
}

/** Which of these columns are read if a person chooses none. */
export function usualColumns(names: readonly string[]): Columns {
  const among = (fields: readonly string[]) => fields.find((field) => names.includes(field));
  return { id: among(idFields), text: among([textField]), title: among([titleField]) };
}

/** Throws an error that says what is wrong. */
export function documentsIn(source: Source, columns: Columns = {}): readonly string[] {
  const { name, text } = source;
  if (isJsonLines(source)) return jsonLines(source, columns);
  const table = tableIn(source);
  if (table === undefined) return [JSON.stringify({ doc_id: name, text })];
  const header = headerOf(table);
  const usual = usualColumns(header);
  for (const [part, column] of [
    ['the ids', columns.id ?? usual.id],
    ['the texts', columns.text ?? usual.text],
  ] as const) {
    if (column === undefined) throw new Error(`${name}: choose the column of ${part}`);
    if (!header.includes(column)) throw new Error(`${name} has no column ${column}`);
  }
  return table.slice(1).map((row, at) => {
    if (row.length !== header.length)
      throw new Error(`${name}: row ${at + 1} has ${row.length} fields, the header ${header.length}`);
    return documentOf(Object.fromEntries(header.map((field, column) => [field, row[column]])), columns);
  });
}

function isJsonLines({ name, text }: Source): boolean {
  return /\.(jsonl|ndjson|json)$/i.test(name) || (name === pastedName && /^\s*\{/.test(text));
}

/** The rows of CSV, the header first; `undefined` for a text. Pasted text is CSV if its header has the usual names. */
function tableIn({ name, text }: Source): readonly (readonly string[])[] | undefined {
  if (/\.csv$/i.test(name)) return csvRows(text, false);
  if (name !== pastedName) return undefined;
  const rows = csvRows(text, true);
  const { id, text: texts } = usualColumns(headerOf(rows));
  return id === undefined || texts === undefined ? undefined : rows;
}

function headerOf([header = []]: readonly (readonly string[])[]): readonly string[] {
  return header;
}

function jsonLines(source: Source, columns: Columns): readonly string[] {
  const { id = 'doc_id', text = textField, title } = columns;
  const areOwn = id === 'doc_id' && text === textField && title === undefined;
  return Array.from(linesOf(source), ({ line, fields }) => {
    // Numbers keep their digits in a line that is sent as it is.
    const isDocument = areOwn && Object.keys(fields).every((field) => own.has(field));
    return isDocument ? line : documentOf(fields, columns);
  });
}

function* linesOf({ name, text }: Source, linesMax?: number) {
  for (const [at, line] of text.split('\n', linesMax).entries()) {
    if (line.trim() !== '') yield { line, fields: jsonObject(`${name}: line ${at + 1}`, line) };
  }
}

/** Throws an error if the row says when it expires: an upload has one expiry for all documents. */
function documentOf(row: Readonly<Record<string, unknown>>, columns: Columns): string {
  if ('expires_at' in row)
    throw new Error('expires_at: choose one expiry for all documents below, or run maxsimd import');
  const {
    id = usualColumns(Object.keys(row)).id ?? 'doc_id',
    text = textField,
    title = titleField,
  } = columns;
  const { [id]: docId, metadata, ...others } = row;
  const { [text]: body, ...rest } = others;
  const { [title]: heading, ...fields } = rest;
  return JSON.stringify({
    // The service names a row without an id, or without a text.
    doc_id: typeof docId === 'string' ? docId : JSON.stringify(docId ?? undefined),
    text: body,
    metadata: {
      ...(metadata as object),
      ...fields,
      ...(heading === undefined ? {} : { [titleField]: heading }),
    },
  });
}

/** Rows of RFC 4180: a field in quotes may have commas, quotes (twice) and ends of lines. */
function csvRows(text: string, mayBeText: boolean): readonly (readonly string[])[] {
  const rows: string[][] = [[]];
  const field = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/gy;
  while (field.lastIndex < text.length) {
    const match = field.exec(text);
    if (match === null && mayBeText) return [];
    if (match === null) throw new Error(`row ${rows.length} of the CSV has a quote in the wrong place`);
    const [, quoted, plain = '', end] = match;
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== ',' && field.lastIndex < text.length) rows.push([]);
  }
  return rows.filter((row) => row.length > 1 || row[0] !== '');
}
