/**
 * JSON in and out without loss: integers beyond 2^53 (64-bit identifiers, nanosecond timestamps in customer
 * metadata) keep their digits, and numbers beyond a double stay numbers, as raw JSON that `JSON.stringify`
 * writes out as it came.
 */

/** Node 22 and later have it (proposal-json-parse-with-source); not in TypeScript's library yet. */
const sourceAccess = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
};

const longInteger = /^-?\d{16,}$/;
/** Looked for first: a parse with a reviver takes several times as long. */
const mayHoldOne = /\d{16}|\d[eE]\+?\d{3}/;

/** Throws a `SyntaxError` whose message quotes the text: it may be private, so do not pass it on. */
export function parseJson(text: string): unknown {
  if (!mayHoldOne.test(text)) return JSON.parse(text);
  return sourceAccess.parse(text, (_key, value, { source }) => {
    if (typeof value !== 'number' || source === undefined) return value;
    const exact = longInteger.test(source) ? Number.isSafeInteger(value) : Number.isFinite(value);
    return exact ? value : sourceAccess.rawJSON(source);
  });
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
