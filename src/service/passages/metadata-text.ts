/** Reads single fields of metadata, whose text is kept as it was sent. Other fields are not parsed. */
import {
  objectTextOf,
  writtenItems,
  writtenMembers,
  type WrittenMember,
} from '../../index/terms/canonical-json.ts';
import { isPath, namesOf } from '../../index/terms/field-path.ts';
import type { JsonObjectText } from '../contract.ts';

/**
 * The fields alone, in the order of `names` (in canonical form), each as it was sent. A field that is named by a path stands in the
 * objects and arrays around it, which have nothing else.
 */
export function withFieldsAlone(metadata: JsonObjectText, names: readonly string[]): JsonObjectText {
  const members = writtenMembers(metadata);
  const paths = names.map((name) =>
    isPath(name) && !members.has(name)
      ? namesOf(JSON.parse(name) as string).map((part) => JSON.stringify(part))
      : [name],
  );
  return objectTextOf(membersAlong(members, paths));
}

type Path = readonly string[];

function membersAlong(members: ReadonlyMap<string, WrittenMember>, paths: readonly Path[]): WrittenMember[] {
  const byFirst = Map.groupBy(paths, ([first]) => first);
  return [...byFirst].flatMap(([first, along]) => {
    const member = members.get(first ?? '');
    if (member === undefined || along.some((path) => path.length === 1)) return member ?? [];
    const value = valueAlong(
      member.value,
      along.map((path) => path.slice(1)),
    );
    return value === undefined ? [] : { ...member, value };
  });
}

/** The part of an object, or of the objects in an array; `undefined` if it has none of these. */
function valueAlong(value: string, paths: readonly Path[]): string | undefined {
  if (value.startsWith('{')) {
    const found = membersAlong(writtenMembers(value), paths);
    return found.length === 0 ? undefined : objectTextOf(found);
  }
  if (!value.startsWith('[')) return undefined;
  const objects = writtenItems(value).filter((item) => item.startsWith('{'));
  const found = objects.flatMap((item) => valueAlong(item, paths) ?? []);
  return found.length === 0 ? undefined : `[${found.join(',')}]`;
}

/** The value of a top-level field; `undefined` unless it is a string. */
export function stringField(metadata: JsonObjectText, field: string): string | undefined {
  const value = writtenMembers(metadata).get(JSON.stringify(field))?.value;
  return value?.startsWith('"') === true ? (JSON.parse(value) as string) : undefined;
}
