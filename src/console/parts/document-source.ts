/** Documents in a file, as the JSON texts that an upsert takes: JSON lines, CSV with a header, or one text. */
import { jsonObject } from './json-object.ts';

export interface Source {
  readonly name: string;
  readonly text: string;
}

/** Pasted text may have any of the forms. */
export const pastedName = 'pasted';
const own = new Set(['doc_id', 'text', 'metadata']);
const idFields = ['doc_id', '_id', 'id'];

/** Throws an error that says what is wrong. */
export function documentsIn({ name, text }: Source): readonly string[] {
  const isPasted = name === pastedName;
  if (/\.(jsonl|ndjson|json)$/i.test(name) || (isPasted && /^\s*\{/.test(text)))
    return jsonLines({ name, text });
  const [header = [], ...rows] = /\.csv$/i.test(name) || isPasted ? csvRows(text, isPasted) : [];
  const isTable = header.includes('text') && idFields.some((field) => header.includes(field));
  if (isTable) {
    return rows.map((row, at) => {
      if (row.length !== header.length)
        throw new Error(`${name}: row ${at + 1} has ${row.length} fields, the header ${header.length}`);
      return documentOf(Object.fromEntries(header.map((field, column) => [field, row[column]])));
    });
  }
  if (/\.csv$/i.test(name)) throw new Error(`${name} has no columns doc_id (or id) and text`);
  return [JSON.stringify({ doc_id: name, text })];
}

function jsonLines({ name, text }: Source): readonly string[] {
  const documents: string[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const fields = jsonObject(`${name}: line ${at + 1}`, line);
    // Numbers keep their digits in a line that is sent as it is.
    documents.push(Object.keys(fields).every((field) => own.has(field)) ? line : documentOf(fields));
  }
  return documents;
}

/** Throws an error if the row says when it expires: an upload has one expiry for all documents. */
function documentOf(row: Readonly<Record<string, unknown>>): string {
  if ('expires_at' in row)
    throw new Error('expires_at: choose one expiry for all documents below, or run maxsimd import');
  const id = idFields.find((field) => field in row) ?? 'doc_id';
  const { [id]: docId, text, metadata, ...others } = row;
  return JSON.stringify({ doc_id: String(docId), text, metadata: { ...(metadata as object), ...others } });
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
