/**
 * Reads `where`: conditions on top-level metadata fields, all of which must hold.
 *
 *   { "year": { "gte": 2000, "lt": 2010 }, "language": { "in": ["en", "de"] }, "any_of": [ {...}, {...} ] }
 *
 * The condition of a field is a value that it must equal, or an object of operators, all of which must hold: `in`, `not`,
 * `gt`, `gte`, `lt`, `lte`. `not` holds a condition and passes every document that does not meet it, also one without the
 * field. A range compares numbers with numbers, by their exact values, and strings with strings, by their code points.
 * `any_of` holds objects like the whole, one of which must hold.
 */
import { invalid } from '../../errors.ts';
import { canonicalItems, canonicalMembers } from './canonical-json.ts';
import { allOf, anyOf, anyTerm, inRange, notOf, stepsOf, type Condition } from './condition-tree.ts';
import { termBytes, writeTerm } from './metadata-terms.ts';

/** The number of values in a whole condition. */
export const conditionValuesMax = 256;
/** How deep objects may be nested by `any_of`. */
export const conditionDepthMax = 4;
/**
 * A bound of a range has at most this many UTF-8 bytes (a string) or characters (a number). A longer value of a document lies
 * in no range (native/index/json_values.h).
 */
const boundBytesMax = 256;

/**
 * The condition for the engine; `undefined` if every document meets it. `path`: where it stands in the request.
 * @throws {ServiceError} `validation_error` when it is no condition, or asks for too much.
 */
export function conditionOf(whereText: string, path: string): Uint8Array | undefined {
  const condition = new ConditionReader().object(canonicalMembers(whereText), path, 1);
  return condition === true ? undefined : stepsOf(condition);
}

const boundFlags = new Map([
  ['gt', 1],
  ['gte', 2],
  ['lt', 4],
  ['lte', 8],
]);
const lowFlags = 3;
/** The sums of flags that have at most one bound for each end. */
const rangeFlags = new Set([1, 2, 4, 8, 5, 6, 9, 10]);
const operators = ['in', 'not', ...boundFlags.keys()];
/** An issue shows at most this many characters of a field's name. */
const nameLengthMax = 64;

class ConditionReader {
  #values = 0;

  object(members: ReadonlyMap<string, string>, path: string, depth: number): Condition {
    if (depth > conditionDepthMax) {
      throw invalid(path, `must nest any_of at most ${conditionDepthMax - 1} deep`, 'too_deep');
    }
    return allOf(
      Array.from(members, ([name, value]) => {
        const memberPath = `${path}.${textOf(name).slice(0, nameLengthMax).toWellFormed()}`;
        return name === '"any_of"'
          ? this.#anyOf(value, memberPath, depth)
          : this.#condition(name, value, memberPath);
      }),
    );
  }

  #anyOf(text: string, path: string, depth: number): Condition {
    if (!text.startsWith('[')) throw invalid(path, 'must be an array of objects', 'invalid_type');
    return anyOf(
      canonicalItems(text).map((item, place) => {
        const itemPath = `${path}.${place}`;
        if (!item.startsWith('{')) throw invalid(itemPath, 'must be an object', 'invalid_type');
        return this.object(canonicalMembers(item), itemPath, depth + 1);
      }),
    );
  }

  #condition(name: string, text: string, path: string): Condition {
    if (!text.startsWith('{')) return this.#terms(name, [text], path);
    const bounds: Bound[] = [];
    const parts: Condition[] = [];
    for (const [key, value] of canonicalMembers(text)) {
      const operator = textOf(key);
      const flag = boundFlags.get(operator);
      if (flag !== undefined) bounds.push({ flag, value, path: `${path}.${operator}` });
      else if (operator === 'in') parts.push(this.#in(name, value, `${path}.in`));
      else if (operator === 'not') parts.push(notOf(this.#condition(name, value, `${path}.not`)));
      else throw invalid(path, `must hold no operators but ${operators.join(', ')}`, 'unrecognized_keys');
    }
    if (parts.length === 0 && bounds.length === 0) throw invalid(path, 'must hold an operator', 'too_small');
    if (bounds.length > 0) parts.push(this.#range(name, bounds, path));
    return allOf(parts);
  }

  #in(name: string, text: string, path: string): Condition {
    if (!text.startsWith('[')) throw invalid(path, 'must be an array of values', 'invalid_type');
    return this.#terms(name, canonicalItems(text), path);
  }

  #terms(name: string, values: readonly string[], path: string): Condition {
    this.#count(values.length, path);
    const terms = Buffer.alloc(values.length * termBytes);
    for (const [place, value] of values.entries()) writeTerm(terms, place * termBytes, name, value);
    return anyTerm(terms);
  }

  #range(name: string, bounds: readonly Bound[], path: string): Condition {
    this.#count(bounds.length, path);
    const flags = bounds.reduce((sum, { flag }) => sum | flag, 0);
    if (!rangeFlags.has(flags)) {
      throw invalid(path, 'must have at most one lower and one upper bound', 'invalid_range');
    }
    for (const bound of bounds) assertBound(bound);
    const low = bounds.find(({ flag }) => (flag & lowFlags) !== 0)?.value;
    const high = bounds.find(({ flag }) => (flag & lowFlags) === 0)?.value;
    if (low !== undefined && high !== undefined && low.startsWith('"') !== high.startsWith('"')) {
      throw invalid(path, 'must have bounds of one type', 'invalid_type');
    }
    return inRange({ flags, field: name, low: low ?? '', high: high ?? '' });
  }

  /** An `in` without values counts as one. */
  #count(values: number, path: string): void {
    this.#values += Math.max(1, values);
    if (this.#values > conditionValuesMax) {
      throw invalid(path, `where must compare with at most ${conditionValuesMax} values`, 'too_big');
    }
  }
}

interface Bound {
  readonly flag: number;
  /** In canonical form. */
  readonly value: string;
  readonly path: string;
}

/** Refuses a bound that is neither a string nor a number whose exact value the engine can order. */
function assertBound({ value, path }: Bound): void {
  const isNumber = /^[-\d]/.test(value);
  if (!isNumber && !value.startsWith('"'))
    throw invalid(path, 'must be a number or a string', 'invalid_type');
  const bytes = isNumber ? value.length : Buffer.byteLength(textOf(value));
  if (bytes > boundBytesMax) throw invalid(path, `must have at most ${boundBytesMax} bytes`, 'too_big');
  // The engine orders numbers by their exact values far beyond the range of a double.
  const double = Number(value);
  if (isNumber && (!Number.isFinite(double) || (double === 0 && value !== '0'))) {
    throw invalid(path, 'must lie within the range of a double', 'too_big');
  }
}

function textOf(token: string): string {
  return JSON.parse(token) as string;
}
