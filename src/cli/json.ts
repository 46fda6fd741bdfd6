/**
 * Reads and writes JSON without loss, because the service compares numbers by their exact values. A number that a double
 * does not hold (64-bit identifiers, long decimals, very large numbers) becomes raw JSON. `JSON.stringify` writes it as it
 * came.
 */
import { dottedPath } from '../input/issue-words.ts';
import { repeatedName } from '../service/repeated-names.ts';

/** Node 22 and later have it (proposal-json-parse-with-source); not in TypeScript's library yet. */
const sourceAccess = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): RawJson;
  isRawJSON(value: unknown): value is RawJson;
};

/** A number with the digits that it came with. */
export interface RawJson {
  readonly rawJSON: string;
}

/** A double holds any 15 digits. Only longer numbers need a reviver, which makes parsing several times slower. */
const mayBeLong = /\d[\d.]{15}|\d[eE][-+]?\d{3}/;

/** Throws a `SyntaxError` whose message quotes the text. Do not pass it on, because the text may be private. */
export function parseJson(text: string): unknown {
  if (!mayBeLong.test(text)) return JSON.parse(text);
  return sourceAccess.parse(text, (_key, value, { source }) => {
    if (typeof value !== 'number' || source === undefined) return value;
    const isWide = Number.isInteger(value) && !Number.isSafeInteger(value);
    const exact = !mayBeLong.test(source) || (!isWide && String(value) === source);
    return exact ? value : sourceAccess.rawJSON(source);
  });
}

/** A name occurs twice in one object. The message names it by its path, and quotes no value. */
export class RepeatedNameError extends Error {}

/** JSON that a person or a file gives. `JSON.parse` would lose all but the last value of a name that occurs twice. */
export function parseGivenJson(text: string): unknown {
  const value = parseJson(text);
  const repeated = repeatedName(text);
  if (repeated === undefined) return value;
  throw new RepeatedNameError(`${dottedPath(repeated)} occurs twice in one object`);
}

export function isRawJson(value: unknown): value is RawJson {
  return sourceAccess.isRawJSON(value);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJson(value);
}

const integer = /^-?\d+$/;

/** An identifier as text. Some exports write identifiers as numbers of any length. */
export function identifierText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (isRawJson(value)) return integer.test(value.rawJSON) ? value.rawJSON : undefined;
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined;
}
