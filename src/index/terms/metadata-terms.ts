/**
 * Metadata terms: what a record stores and a filter asks for. A term is a 16-byte hash of one top-level
 * field and its value, equal exactly when field and value are equal as JSON: numbers by value
 * (1 = 1.0 = 1e0, -0 = 0), strings, booleans, null (which is not "missing": a missing field has no
 * term), arrays in order, objects whatever the order of their keys.
 *
 * The hash is SHA-256 cut to 128 bits: a customer who searches for collisions finds none, and the engine
 * compares 16 bytes instead of JSON.
 */
import { hash } from 'node:crypto';
import { canonicalMembers } from './canonical-json.ts';

export const termBytes = 16;

/** Terms of a JSON object's fields, concatenated: `16 x fields` bytes. The text is as `canonicalMembers` wants it. */
export function metadataTerms(objectText: string): Uint8Array {
  const members = canonicalMembers(objectText);
  const terms = Buffer.alloc(members.size * termBytes);
  let offset = 0;
  for (const [name, value] of members) offset += writeTerm(terms, offset, name, value);
  return terms;
}

/** Writes the term of a field and a value, both in canonical form; returns its bytes. */
export function writeTerm(terms: Buffer, offset: number, name: string, value: string): number {
  // As a string of bytes: a buffer for each digest takes ten times as long, most of it to be collected again.
  return terms.write(hash('sha256', `${name}:${value}`, 'binary'), offset, termBytes, 'binary');
}
