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

export const termBytes = 16;

/** Terms of an object's fields, concatenated: `16 x fields` bytes. */
export function metadataTerms(fields: Readonly<Record<string, unknown>>): Uint8Array {
  const names = Object.keys(fields);
  const terms = new Uint8Array(names.length * termBytes);
  for (const [index, name] of names.entries()) {
    const digest = hash('sha256', `${JSON.stringify(name)}:${canonicalJson(fields[name])}`, 'buffer');
    terms.set(digest.subarray(0, termBytes), index * termBytes);
  }
  return terms;
}

/**
 * One text for every JSON value, the same for equal values only. Integers beyond 2^53 may come as raw JSON
 * values, which keep all their digits.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'number') return canonicalNumber(value);
  if (rawJson.isRawJSON(value)) return canonicalInteger(value.rawJSON);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const object = value as Readonly<Record<string, unknown>>;
    const members = Object.keys(object)
      .toSorted()
      .map((name) => `${JSON.stringify(name)}:${canonicalJson(object[name])}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}

/** ECMAScript "JSON.parse source text access", which TypeScript's es2024 library lacks. */
const rawJson = JSON as unknown as {
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
};

function canonicalNumber(value: number): string {
  // Also turns -0 into 0; large integers are written in full, as raw ones are.
  return Number.isInteger(value) ? BigInt(value).toString() : String(value);
}

function canonicalInteger(digits: string): string {
  return /^-?\d+$/.test(digits) ? BigInt(digits).toString() : canonicalNumber(Number(digits));
}
