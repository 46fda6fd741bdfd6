/**
 * Match terms: for each text in the match fields of an index, a record has the hash of its field and its loose key, beside its
 * metadata terms. They tell which documents have a word of a query as a value.
 */
import { hash } from 'node:crypto';
import { termBytes } from './metadata-terms.ts';

/** Longer values do not match. UTF-8. */
export const matchBytesMax = 256;
/** A metadata term hashes a JSON string first, so none begins like this. The number is that of the rules of loose keys. */
const prefix = 'match1';

/** The term of a field (a name or a path, as `match_fields` has it) and a loose key. */
export function matchTerm(field: string, key: string): Uint8Array {
  return Buffer.from(
    hash('sha256', `${prefix}:${JSON.stringify(field)}:${key}`, 'binary').slice(0, termBytes),
    'latin1',
  );
}
