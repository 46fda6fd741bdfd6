/**
 * Takes a row apart: identifier, text, and what may become metadata. A row has the usual names, those of the command line, or
 * those of the library that wrote it (`--from`). The command line goes before the library.
 */
import type { Export, JsonObject, Named } from './exports/export.ts';
import { formsOf, libraries, rowFormOf } from './exports/exports.ts';
import type { ExportName } from './exports/names.ts';
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
export function fieldsOfRow(row: JsonObject, choice: FieldChoice): RowFields | { readonly problem: string } {
  return choice.from === undefined ? usualFields(row, choice) : exportFields(row, choice, choice.from);
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

function exportFields(
  row: JsonObject,
  choice: FieldChoice,
  from: ExportName,
): RowFields | { readonly problem: string } {
  const library = libraries[from];
  const form = rowFormOf(library, row);
  if (form === undefined) return { problem: formsOf(from) };
  const taken = form.take(row);
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
  const short = (name: string): string => {
    const prefix = library.prefixes.find((inside) => name.startsWith(`${inside}.`));
    return prefix === undefined ? name : name.slice(prefix.length + 1);
  };
  const isUsual = usual !== undefined && (asked === usual.name || asked === short(usual.name));
  if (asked === undefined || isUsual) return { field: usual, rest: fields };
  const { [short(asked)]: value, ...others } = withFieldsOnTop(fields, { text: short(asked) });
  return {
    field: value === undefined ? undefined : { name: asked, value },
    rest: usual === undefined ? others : { [short(usual.name)]: usual.value, ...others },
  };
}
