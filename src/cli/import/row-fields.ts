/**
 * Takes a row apart: identifier, text, and what may become metadata. A row has the usual names, those of the command line, or
 * those of the library that wrote it (`--from`). The command line goes before the library.
 */
import {
  hasValue,
  namesIn,
  type Export,
  type ExportRow,
  type JsonObject,
  type Named,
} from './exports/export.ts';
import { formsOf, libraries, rowFormOf } from './exports/exports.ts';
import { expiryField, idFieldsOf, isExpiry, withFieldsOnTop, type FieldChoice } from './fields.ts';

export interface RowFields {
  /** `undefined` = the row has no identifier. */
  readonly idField: string | undefined;
  readonly id: unknown;
  /** It comes before the text. '' = there is none. */
  readonly title: unknown;
  readonly textField: string;
  readonly text: unknown;
  /** The object `metadata` of the row, or the JSON text of one. */
  readonly metadata: unknown;
  readonly expiresAt: unknown;
  /** Fields that become metadata, unless the command line names others. */
  readonly further: JsonObject;
  /** Vectors, which are left out. */
  readonly vectors: readonly string[];
  readonly remark: string | undefined;
}

/** A row that no form of the library fits is a problem. */
export function fieldsOfRow(
  row: JsonObject,
  choice: FieldChoice,
  hasColumns: boolean,
): RowFields | { readonly problem: string } {
  if (choice.from === undefined) return usualFields(row, choice);
  const library = libraries[choice.from];
  const taken = rowFormOf(library, row)?.take(row, hasColumns);
  return taken === undefined ? { problem: formsOf(choice.from) } : exportFields(taken, choice, library);
}

const unopened = 'have $meta as JSON text, in which no condition finds anything: --from milvus opens it';

function usualFields(row: JsonObject, choice: FieldChoice): RowFields {
  const object = withFieldsOnTop(row, choice);
  const idField = idFieldsOf(choice).find((name) => object[name] !== undefined && object[name] !== null);
  const textField = choice.text ?? 'text';
  const title = textField === 'title' ? '' : (object['title'] ?? '');
  const further = Object.entries(object).filter(
    ([name]) =>
      ![idField, textField, 'metadata'].includes(name) &&
      (name !== 'title' || title !== '') &&
      !isExpiry(name, choice),
  );
  return {
    idField,
    id: idField === undefined ? undefined : object[idField],
    title,
    textField,
    text: object[textField],
    metadata: object['metadata'],
    expiresAt: isExpiry(expiryField, choice) ? object[expiryField] : undefined,
    further: Object.fromEntries(further),
    vectors: [],
    remark: typeof object['$meta'] === 'string' ? unopened : undefined,
  };
}

function exportFields(taken: ExportRow, choice: FieldChoice, library: Export): RowFields {
  const id = chosen(choice.id, taken.id, { fields: taken.fields, library });
  const text = chosen(choice.text, taken.text, { fields: id.rest, library });
  const vectors = Object.entries(taken.vectors ?? {});
  const isNamed = ([name]: readonly [string, unknown]): boolean => choice.metadata?.includes(name) === true;
  return {
    idField: id.field?.name,
    id: id.field?.value,
    title: '',
    textField: text.field?.name ?? choice.text ?? 'text',
    text: text.field?.value,
    metadata: undefined,
    expiresAt: undefined,
    further: { ...text.rest, ...Object.fromEntries(vectors.filter(isNamed)) },
    vectors: vectors.filter((vector) => !isNamed(vector)).map(([name]) => name),
    remark: taken.remark,
  };
}

/** The field that the command line names, or else that of the library. */
function chosen(
  asked: string | undefined,
  usual: Named | undefined,
  { fields, library }: { readonly fields: JsonObject; readonly library: Export },
): { readonly field: Named | undefined; readonly rest: JsonObject } {
  const usualNames = usual === undefined ? [] : namesIn(library, usual.name);
  if (asked === undefined || usualNames.includes(asked)) return { field: usual, rest: fields };
  const unused = usual === undefined ? {} : { [usualNames.at(-1)!]: usual.value };
  for (const name of namesIn(library, asked)) {
    const lifted = withFieldsOnTop(fields, { text: name });
    if (!hasValue(lifted, name)) continue;
    const { [name]: value, ...others } = lifted;
    return { field: { name: asked, value }, rest: { ...unused, ...others } };
  }
  return { field: undefined, rest: { ...unused, ...fields } };
}
