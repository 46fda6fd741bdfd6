/** The fields of a row that make a document: the usual names, or the names that the command line gives. */
import { CommandFailure, inputError } from '../failure.ts';
import { isObject } from '../json.ts';
import { libraries } from './exports/exports.ts';
import type { ExportName } from './exports/names.ts';
import type { RowFile } from './sources/row-file.ts';

const idFields = ['doc_id', '_id', 'id'];

/** A document with this field expires at its time. */
export const expiryField = 'expires_at';

/** Names that replace the usual ones. */
export interface FieldChoice {
  /** The library that wrote the input, whose names are the usual ones then. */
  readonly from?: ExportName | undefined;
  readonly id?: string | undefined;
  /** A row without an identifier gets one of its content. */
  readonly autoId?: boolean | undefined;
  readonly text?: string | undefined;
  /** The metadata field that keeps the text. */
  readonly keepText?: string | undefined;
  /** The metadata field that gets the words of the text that look like identifiers. */
  readonly identifiers?: string | undefined;
  /** Whether long documents are cut; a number of bytes of text says where. */
  readonly cut?: boolean | number | undefined;
  /** Further fields that become metadata; `undefined` = all. */
  readonly metadata?: readonly string[] | undefined;
  /** Columns of CSV and fields of front matter whose values stay strings. Without it, their values decide. */
  readonly strings?: readonly string[] | 'all' | undefined;
}

/** Refuses a file whose columns make no document. `advice` is the end of the message. */
export function assertColumns(
  { name, columns, bytesColumns = [] }: RowFile,
  choice: FieldChoice,
  advice = '',
): void {
  if (columns === undefined) return;
  const list = columns.map((column) => JSON.stringify(column)).join(', ');
  const missing = (what: string, option: string, other = ''): CommandFailure =>
    inputError(`${name} has no column ${what}, but ${list}: choose one with ${option} NAME${other}${advice}`);
  if (!hasId(columns, choice))
    throw missing(idFieldsOf(choice).join(', '), '--id-field', ', or let --auto-id make ids of the content');
  if (!hasOne(columns, textFieldsOf(choice))) throw missing(choice.text ?? 'text', '--text-field');
  const bytes = idFieldsOf(choice).find((column) => bytesColumns.includes(column));
  if (bytes === undefined) return;
  throw inputError(
    `${name}: the column ${JSON.stringify(bytes)} holds bytes without a type that says what they are, so it is no id: write it as strings, or choose another column with --id-field NAME${advice}`,
  );
}

/** Whether these columns make a document. */
export function isDocument(columns: readonly string[], choice: FieldChoice): boolean {
  return hasId(columns, choice) && hasOne(columns, textFieldsOf(choice));
}

/** Whether the field is the expiry of a document. `--metadata-fields` can say that it is metadata. */
export function isExpiry(field: string, choice: FieldChoice): boolean {
  return field === expiryField && choice.metadata?.includes(field) !== true;
}

/** Whether the command line asks for strings. */
export function staysString(field: string, { strings }: FieldChoice): boolean {
  return strings === 'all' || strings?.includes(field) === true;
}

/** Whether a column of strings may have numbers or booleans. Identifiers and texts always stay strings. */
export function mayBeTyped(column: string, choice: FieldChoice): boolean {
  const isOwn = ['title', 'metadata', ...idFieldsOf(choice), ...textFieldsOf(choice)].includes(column);
  return (
    !staysString(column, choice) &&
    !isOwn &&
    !isExpiry(column, choice) &&
    (choice.metadata?.includes(column) ?? true)
  );
}

function hasId(columns: readonly string[], choice: FieldChoice): boolean {
  return choice.autoId === true || hasOne(columns, idFieldsOf(choice));
}

/** The first of them that a row has is its identifier. */
export function idFieldsOf({ id, from }: FieldChoice): readonly string[] {
  if (id !== undefined) return [id];
  return from === undefined ? idFields : (libraries[from].idColumns ?? []);
}

function textFieldsOf({ text, from }: FieldChoice): readonly string[] {
  if (text !== undefined) return [text];
  return from === undefined ? ['text', 'title'] : ['text'];
}

function hasOne(columns: readonly string[], names: readonly string[]): boolean {
  return names.some((name) => columns.includes(name) || columns.includes(name.split('.', 1)[0]!));
}

/**
 * The row with the fields of the given names at its top. A name such as `meta.id` is that of a field in an object, unless
 * the row has a field of this very name.
 */
export function withFieldsOnTop(
  row: Readonly<Record<string, unknown>>,
  { id, text }: FieldChoice,
): Readonly<Record<string, unknown>> {
  const dotted = [id, text].filter((name) => name?.includes('.') === true && !Object.hasOwn(row, name));
  return dotted.reduce<Readonly<Record<string, unknown>>>((lifted, name) => {
    const { value, rest } = takenOut(lifted, name!.split('.'));
    return value === undefined ? lifted : { ...rest, [name!]: value };
  }, row);
}

/** The value at a path, and a copy of the row without it. */
function takenOut(
  object: Readonly<Record<string, unknown>>,
  [name, ...path]: readonly string[],
): { readonly value: unknown; readonly rest: Readonly<Record<string, unknown>> } {
  const field = Object.hasOwn(object, name!) ? object[name!] : undefined;
  const { [name!]: _taken, ...others } = object;
  if (path.length === 0) return { value: field, rest: others };
  if (!isObject(field)) return { value: undefined, rest: object };
  const { value, rest } = takenOut(field, path);
  return { value, rest: Object.keys(rest).length === 0 ? others : { ...object, [name!]: rest } };
}
