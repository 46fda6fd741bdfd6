/**
 * Finds a name that occurs twice in one object of a JSON text. RFC 8259 section 4 leaves open what such an object means.
 * `JSON.parse` keeps the last of the values and loses the others without a word.
 */

export type JsonPath = readonly (string | number)[];

interface Container {
  /** Name or position of the member that is being read. */
  at: string | number | undefined;
  /** Names of an object, from the second one on. */
  names?: Set<string>;
}

/** Longer names are cut in paths, because they may be of any length. */
const nameLengthMax = 64;
const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** The path of the first such name. `json` must be valid JSON. */
export function repeatedName(json: string): JsonPath | undefined {
  const around: Container[] = [];
  let isBeforeName = false;
  for (let at = 0; at < json.length; at += 1) {
    switch (json.charCodeAt(at)) {
      case quote: {
        const start = at;
        at = closingQuote(json, start);
        if (isBeforeName && isRepeated(around.at(-1)!, nameIn(json.slice(start, at + 1))))
          return around.map((container) => cut(container.at!));
        isBeforeName = false;
        break;
      }
      case openBrace:
        around.push({ at: undefined });
        isBeforeName = true;
        break;
      case openBracket:
        around.push({ at: 0 });
        break;
      case closeBrace:
      case closeBracket:
        around.pop();
        isBeforeName = false;
        break;
      case comma: {
        const container = around.at(-1)!;
        if (typeof container.at === 'number') container.at += 1;
        else isBeforeName = true;
      }
    }
  }
  return undefined;
}

export function cut(name: string | number): string | number {
  if (typeof name === 'number' || name.length <= nameLengthMax) return name;
  return `${name.slice(0, nameLengthMax).toWellFormed()}...`;
}

function isRepeated(object: Container, name: string): boolean {
  const before = object.at;
  object.at = name;
  // Most objects are small, and many have a single name.
  if (typeof before !== 'string') return false;
  object.names ??= new Set([before]);
  if (object.names.has(name)) return true;
  object.names.add(name);
  return false;
}

/** `a` may be written as `\u0061`. */
function nameIn(token: string): string {
  return token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1);
}

function closingQuote(json: string, start: number): number {
  for (let from = start + 1; ;) {
    const found = json.indexOf('"', from);
    if (found === -1) return json.length;
    let first = found;
    while (first > from && json.charCodeAt(first - 1) === backslash) first -= 1;
    if ((found - first) % 2 === 0) return found;
    from = found + 1;
  }
}
