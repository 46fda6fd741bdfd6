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
