/** Reads single fields of metadata, whose text is kept as it was sent. Other fields are not parsed. */
import { objectTextOf, writtenMembers } from '../../index/terms/canonical-json.ts';
import type { JsonObjectText } from '../contract.ts';

/** The fields alone, in the order of `names` (in canonical form), each as it was sent. */
export function withFieldsAlone(metadata: JsonObjectText, names: readonly string[]): JsonObjectText {
  const members = writtenMembers(metadata);
  return objectTextOf(names.flatMap((name) => members.get(name) ?? []));
}

/** The value of a top-level field; `undefined` unless it is a string. */
export function stringField(metadata: JsonObjectText, field: string): string | undefined {
  const value = writtenMembers(metadata).get(JSON.stringify(field))?.value;
  return value?.startsWith('"') === true ? (JSON.parse(value) as string) : undefined;
}
