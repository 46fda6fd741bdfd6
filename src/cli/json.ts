/**
 * JSON in and out without loss: integers beyond 2^53 (64-bit identifiers, nanosecond timestamps in customer
 * metadata) keep their digits, as raw JSON that `JSON.stringify` writes out as it came.
 */

/** Of Node 22 and later (proposal-json-parse-with-source); not in TypeScript's library yet. */
const sourceAccess = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
};

const longInteger = /^-?\d{16,}$/;

/** Throws a `SyntaxError` whose message quotes the text: it may be private, so do not pass it on. */
export function parseJson(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return sourceAccess.parse(text, (_key, value, { source }) =>
    source !== undefined && longInteger.test(source) && !Number.isSafeInteger(value)
      ? sourceAccess.rawJSON(source)
      : value,
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
