/**
 * Metadata terms, which a record stores and a filter asks for. A term is a 16-byte hash of a top-level field and its value.
 * Two terms are equal exactly when field and value are equal as JSON: numbers by value (1 = 1.0 = 1e0, -0 = 0), arrays in
 * order, objects whatever the order of their keys. `null` is a value, and a missing field has no term.
 *
 * The hash is SHA-256 cut to 128 bits. Nobody can construct a collision, and the engine compares 16 bytes instead of JSON.
 */
import { hash } from 'node:crypto';
import { canonicalMembers } from './canonical-json.ts';

export const termBytes = 16;

/** The terms of an object's fields, concatenated: 16 bytes a field. `objectText` must be as `canonicalMembers` asks. */
export function metadataTerms(objectText: string): Uint8Array {
  const members = canonicalMembers(objectText);
  const terms = Buffer.alloc(members.size * termBytes);
  let offset = 0;
  for (const [name, value] of members) offset += writeTerm(terms, offset, name, value);
  return terms;
}

/** Writes the term of a field and a value, both in canonical form. Returns the number of bytes written. */
export function writeTerm(terms: Buffer, offset: number, name: string, value: string): number {
  // The digest is a string of bytes. A buffer for each digest would take ten times as long, most of it in garbage collection.
  return terms.write(hash('sha256', `${name}:${value}`, 'binary'), offset, termBytes, 'binary');
}
