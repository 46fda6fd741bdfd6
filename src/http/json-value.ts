/**
 * Facts about customer-defined JSON values (metadata, metadata schemas, filters). Values come from
 * `JSON.parse`, so `__proto__` and the like are own properties: data, never a prototype.
 */

export interface JsonValueFacts {
  /** Nested objects and arrays, the outermost one included; counting stops one past `depthMax`. */
  readonly depth: number;
  /** A number such as 1e400 that a double cannot hold, and that would come back as null. */
  readonly holdsNonFinite: boolean;
  /** An integer beyond 2^53, of which a double keeps only the leading digits. */
  readonly holdsLongInteger: boolean;
}

export function inspectJsonValue(value: unknown, depthMax: number): JsonValueFacts {
  let deepest = 0;
  let holdsNonFinite = false;
  let holdsLongInteger = false;
  // Recursion is bounded by depthMax, whatever the request's nesting.
  const visit = (node: unknown, depth: number): void => {
    if (typeof node === 'number') {
      if (!Number.isFinite(node)) holdsNonFinite = true;
      else if (Number.isInteger(node) && !Number.isSafeInteger(node)) holdsLongInteger = true;
      return;
    }
    if (typeof node !== 'object' || node === null) return;
    if (depth > deepest) deepest = depth;
    if (depth > depthMax) return;
    for (const child of Array.isArray(node) ? node : Object.values(node)) visit(child, depth + 1);
  };
  visit(value, 1);
  return { depth: deepest, holdsNonFinite, holdsLongInteger };
}

/** Bytes of the value as compact JSON in UTF-8. The value's depth must have been checked before. */
export function serialisedBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** ECMAScript "JSON.parse source text access" (in V8 since 11.4), which TypeScript's es2024 library lacks. */
interface SourceAccess {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}
const sourceAccess = JSON as unknown as SourceAccess;

/**
 * Parses JSON keeping the digits of integers beyond 2^53: they become raw JSON values, which
 * `JSON.stringify` writes out as they came. Several times slower than a plain parse.
 */
export function parseKeepingLongIntegers(text: string): unknown {
  return sourceAccess.parse(text, (_key, value, { source }) =>
    typeof value === 'number' &&
    !Number.isSafeInteger(value) &&
    source !== undefined &&
    /^-?\d+$/.test(source)
      ? sourceAccess.rawJSON(source)
      : value,
  );
}

/** Counts Unicode code points, stopping one past `max`. */
export function codePoints(text: string, max: number): number {
  if (text.length > 2 * max) return max + 1;
  let count = 0;
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xff_ff ? 2 : 1) count += 1;
  return count;
}
