/** Reads a JSON object that a person wrote. */

export type JsonObject = Readonly<Record<string, unknown>>;

/** Throws an error that says what is wrong. */
export function jsonObject(name: string, text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is no JSON object`);
  if (membersIn(value) < colonsIn(text)) throw new Error(`${name} has a name twice in one object`);
  return value as JsonObject;
}

/** One for each member that the text has. `JSON.parse` keeps only the last of those that have one name. */
function colonsIn(text: string): number {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
}

function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, inner) => sum + membersIn(inner), own);
}
