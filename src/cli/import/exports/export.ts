/** An export of another library: the forms of its files, and how a row of each is taken apart. */
import type { Block } from '../../blocks.ts';
import { isObject } from '../../json.ts';
import type { FileRow } from '../sources/row-file.ts';

/** Deeper metadata is refused. */
export const metadataDepthMax = 16;

export type JsonObject = Readonly<Record<string, unknown>>;

export interface Named {
  /** As it stands in the file, such as `kwargs.page_content`. */
  readonly name: string;
  readonly value: unknown;
}

/** A row, taken apart. */
export interface ExportRow {
  readonly id: Named | undefined;
  readonly text: Named | undefined;
  /** All that may become metadata. */
  readonly fields: JsonObject;
  /** Left out, whatever their length, unless the command line names them as metadata. */
  readonly vectors?: JsonObject;
  /** Something that the end of the import tells. "3 rows" go before it. */
  readonly remark?: string | undefined;
}

/** A row that is an object of this form. */
export interface RowForm {
  /** For messages. */
  readonly words: string;
  readonly fits: (row: JsonObject) => boolean;
  /** `hasColumns`: it is of CSV or Parquet. */
  readonly take: (row: JsonObject, hasColumns: boolean) => ExportRow;
  /** Rows of any program may have this form, so it tells nothing about a file. */
  readonly isCommon?: true;
}

/** A file that is one JSON object, or several such objects, with the rows inside of them. */
export interface WholeForm {
  readonly words: string;
  /** Says it by the first 64 KiB of the object. */
  readonly fits: (beginning: JsonObject) => boolean;
  /** Opens the file once, or several times. */
  readonly read: (open: () => AsyncGenerator<Block>, name: string) => AsyncGenerator<FileRow>;
}

export interface Export {
  /** Name of the library. */
  readonly title: string;
  readonly wholes: readonly WholeForm[];
  readonly rows: readonly RowForm[];
  /** Where the fields of `ExportRow` may be in a row, so that `payload.body` names the field `body`. The shortest first. */
  readonly prefixes: readonly string[];
  /** Columns that may hold the identifier, if it also writes CSV and Parquet files. */
  readonly idColumns?: readonly string[];
}

/** The first of these fields that has a value. */
export function firstOf(fields: JsonObject, names: readonly string[], prefix = ''): Named | undefined {
  const name = names.find((candidate) => hasValue(fields, candidate));
  return name === undefined ? undefined : { name: prefix + name, value: fields[name] };
}

export function hasValue(fields: JsonObject, name: string): boolean {
  return Object.hasOwn(fields, name) && fields[name] !== null && fields[name] !== undefined;
}

export function without(fields: JsonObject, names: readonly (string | undefined)[]): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

export function objectIn(fields: JsonObject, name: string): JsonObject {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return isObject(value) ? value : {};
}

/** The fields, with those of the object of this name in its place. The object stays where it has a name that is taken. */
export function withOpened(fields: JsonObject, name: string): JsonObject {
  const { [name]: object, ...others } = fields;
  const isOpened = isObject(object) && !Object.keys(object).some((inner) => Object.hasOwn(others, inner));
  return isOpened ? { ...others, ...object } : fields;
}

/** The names that a field may have in `ExportRow`: `payload.metadata.by` is that field, `metadata.by` or `by`. */
export function namesIn({ prefixes }: Export, asked: string): readonly string[] {
  const around = prefixes.filter((prefix) => asked.startsWith(`${prefix}.`));
  return [asked, ...around.map((prefix) => asked.slice(prefix.length + 1))];
}

/** The vectors under these names. Clients write an empty object where none were asked for. */
export function vectorsIn(fields: JsonObject, names: readonly string[]): JsonObject {
  const found = names.filter(
    (name) => hasValue(fields, name) && Object.keys(fields[name] as object).length > 0,
  );
  return Object.fromEntries(found.map((name) => [name, fields[name]]));
}

export interface StoredFields {
  readonly fields: JsonObject;
  /** Where they are in the row. */
  readonly inside: string;
  readonly textNames: readonly string[];
}

/** The text and the metadata in the fields that a store keeps. LangChain and others put an object `metadata` beside the text. */
export function takeStored({ fields, inside, textNames }: StoredFields): Pick<ExportRow, 'text' | 'fields'> {
  const name = textNames.find((candidate) => hasValue(fields, candidate));
  return {
    text: name === undefined ? undefined : { name: `${inside}.${name}`, value: fields[name] },
    fields: withOpened(without(fields, [name]), 'metadata'),
  };
}
