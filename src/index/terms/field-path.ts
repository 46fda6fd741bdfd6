/**
 * Names of metadata fields with dots. Such a name is a path: `author.name` reads `name` of the object `author`. But if a document
 * has a top-level field of that very name, it reads that field. The engine reads
 * fields in the same way (native/values/field_tokens.h).
 */
import { invalid } from '../../errors.ts';

/** As deep as metadata may be nested. */
export const pathNamesMax = 16;
/** Unicode code points. */
const pathLengthMax = 255;

/** `name`: the name, or its JSON token in canonical form. */
export function isPath(name: string): boolean {
  return name.includes('.');
}

export function namesOf(path: string): readonly string[] {
  return path.split('.');
}

/** @throws {ServiceError} `validation_error` when a path is too deep or too long. `at`: where it stands in the request. */
export function assertPath(path: string, at: string): void {
  if (namesOf(path).length > pathNamesMax) {
    throw invalid(at, `must be a path of at most ${pathNamesMax} names`, 'too_deep');
  }
  // A code point has one or two UTF-16 units.
  if (path.length > pathLengthMax && Array.from(path).length > pathLengthMax) {
    throw invalid(at, `must be a path of at most ${pathLengthMax} code points`, 'too_big');
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The values of a field, as the engine reads them. `isMany`: the path goes through an array, so that they count as one array. */
export function valuesAt(
  object: JsonObject,
  field: string,
): { readonly values: readonly unknown[]; readonly isMany: boolean } {
  const whole = membersOf(object, field);
  if (whole.length > 0) return { values: whole, isMany: false };
  let values: readonly unknown[] = [object];
  let isMany = false;
  for (const name of namesOf(field)) {
    isMany ||= values.some((value) => Array.isArray(value));
    values = values.flatMap((value) => value).flatMap((item) => membersOf(item, name));
  }
  return { values, isMany };
}

/** The member of an object, in an array; none of another value. */
function membersOf(value: unknown, name: string): readonly unknown[] {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && Object.hasOwn(value, name) ? [(value as JsonObject)[name]] : [];
}
