/**
 * Reads `where`: conditions on metadata fields, all of which must hold. A field is top-level, or is named by a path (`field-path.ts`).
 *
 *   { "year": { "gte": 2000, "lt": 2010 }, "language": { "in": ["en", "de"] }, "any_of": [ {...}, {...} ] }
 *
 * The condition of a field is a value that it must equal, or an object of operators, all of which must hold: `in`, `not`,
 * `gt`, `gte`, `lt`, `lte`, `contains`, `contains_any`, `contains_all`, `exists`, `starts_with`, `after`, `before`. `not` holds a condition and passes every
 * document that does not meet it, also one without the field. A range compares numbers with numbers, by their exact values,
 * and strings with strings, by their code points. `contains` finds an item of an array. `starts_with` compares the first code points of a string. `after` and `before` compare dates.
 * `any_of` holds objects like the whole, one of which must hold.
 */
import { invalid, type ServiceError } from '../../errors.ts';
import { canonicalItems, canonicalMembers } from './canonical-json.ts';
import {
  allOf,
  anyOf,
  anyValue,
  anyValueOf,
  comparedFlags,
  inRange,
  notOf,
  rangeFlags,
  stepsOf,
  type Condition,
} from './condition-tree.ts';
import { assertPath, isPath } from './field-path.ts';
import { instantOf } from './instant.ts';
import { operators, ownWordFor } from './operators.ts';
import { boundBytesMax, boundBytesOf, isInDoubleRange, isNumber, isString } from './value-order.ts';

/** The number of values in a whole condition. */
export const conditionValuesMax = 256;
/** How deep objects may be nested by `any_of`. */
export const conditionDepthMax = 4;
/** The number of paths in a whole condition. Each is looked for in the metadata by itself. */
const conditionPathsMax = 16;

/**
 * `path`: where the condition stands in the request.
 * @throws {ServiceError} `validation_error` when it is no condition, or asks for too much.
 */
export function conditionTree(whereText: string, path: string): Condition {
  return new ConditionReader().object(canonicalMembers(whereText), path, 1);
}

/** The condition for the engine; `undefined` if it compares nothing and every document meets it. */
export function conditionOf(whereText: string, path: string): Uint8Array | undefined {
  const condition = conditionTree(whereText, path);
  return condition === true ? undefined : stepsOf(condition);
}

const { aboveLow, lowItself, belowHigh, highItself } = rangeFlags;
const boundFlags = new Map<string, number>([
  ['gt', aboveLow],
  ['gte', lowItself],
  ['lt', belowHigh],
  ['lte', highItself],
]);
const lowFlags = aboveLow | lowItself;
const highFlags = belowHigh | highItself;
/** An issue shows at most this many characters of a field's name. */
const nameLengthMax = 64;

class ConditionReader {
  #values = 0;
  readonly #paths = new Set<string>();

  object(members: ReadonlyMap<string, string>, path: string, depth: number): Condition {
    if (depth > conditionDepthMax) {
      throw invalid(path, `must nest any_of at most ${conditionDepthMax - 1} deep`, 'too_deep');
    }
    return allOf(
      Array.from(members, ([name, value]) => {
        const memberPath = `${path}.${textOf(name).slice(0, nameLengthMax).toWellFormed()}`;
        if (name === '"any_of"') return this.#anyOf(value, memberPath, depth);
        if (isPath(name)) this.#notePath(name, memberPath);
        return this.#condition(name, value, memberPath);
      }),
    );
  }

  #notePath(name: string, path: string): void {
    assertPath(textOf(name), path);
    if (this.#paths.add(name).size <= conditionPathsMax) return;
    throw invalid(path, `where must name at most ${conditionPathsMax} fields with dots`, 'too_big');
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
    const given = new Map(Array.from(canonicalMembers(text), ([key, value]) => [textOf(key), value]));
    if (given.size === 0) throw invalid(path, 'must hold an operator', 'too_small');
    const boundsOf = (names: readonly string[]): readonly Bound[] =>
      names.flatMap((operator) => {
        const value = given.get(operator);
        return value === undefined ? [] : [{ operator, value, path: `${path}.${operator}` }];
      });
    return allOf([
      ...Array.from(given, ([operator, value]) => this.#operator(operator, { name, value, path })),
      this.#range(name, boundsOf([...boundFlags.keys()]), path),
      this.#dates(name, boundsOf(['after', 'before']), path),
    ]);
  }

  /** The condition of one operator. The bounds of ranges make one condition together, and are `true` here. */
  #operator(
    operator: string,
    { name, value, path: above }: { readonly name: string; readonly value: string; readonly path: string },
  ): Condition {
    const path = `${above}.${operator}`;
    switch (operator) {
      case 'in':
        return this.#terms(name, itemsOf(value, path), path);
      case 'not':
        return notOf(this.#condition(name, value, path));
      case 'contains':
        return allOf(this.#items(name, [value], path));
      case 'contains_any':
        return anyOf(this.#items(name, itemsOf(value, path), path));
      case 'contains_all': {
        const values = itemsOf(value, path);
        // Products disagree whether all of no values are in every array or in none.
        if (values.length === 0) throw invalid(path, 'must hold a value', 'too_small');
        return allOf(this.#items(name, values, path));
      }
      case 'exists':
        return this.#exists(name, value, path);
      case 'starts_with':
        return this.#prefix(name, { operator, value, path });
      case 'after':
      case 'before':
        return true;
      default:
        if (!boundFlags.has(operator)) throw unknownOperator(operator, above);
        return true;
    }
  }

  /** A condition for each value: that an array has it. */
  #items(name: string, values: readonly string[], path: string): readonly Condition[] {
    this.#count(values.length, path);
    return values.map((value) => {
      if (/^[[{]/.test(value)) {
        throw invalid(path, 'must compare with strings, numbers, true, false or null', 'invalid_type');
      }
      if (!/^[tfn]/.test(value)) assertBound({ value, path });
      const flags = comparedFlags.items | lowItself | highItself;
      return inRange({ flags, field: name, low: value, high: value });
    });
  }

  #exists(name: string, value: string, path: string): Condition {
    this.#count(1, path);
    if (value !== 'true' && value !== 'false') throw invalid(path, 'must be true or false', 'invalid_type');
    const present = anyValueOf(name);
    return value === 'true' ? present : notOf(present);
  }

  /** Every string starts with the empty one. */
  #prefix(name: string, prefix: Bound): Condition {
    this.#count(1, prefix.path);
    if (!isString(prefix.value)) throw invalid(prefix.path, 'must be a string', 'invalid_type');
    assertBound(prefix);
    const flags = comparedFlags.prefix | lowItself;
    return inRange({ flags, field: name, low: prefix.value, high: '' });
  }

  /** Both bounds are excluded. */
  #dates(name: string, bounds: readonly Bound[], path: string): Condition {
    if (bounds.length === 0) return true;
    this.#count(bounds.length, path);
    for (const bound of bounds) assertDate(bound);
    const [after, before] = ['after', 'before'].map((word) =>
      bounds.find(({ operator }) => operator === word),
    );
    const flags =
      comparedFlags.dates + (after === undefined ? 0 : aboveLow) + (before === undefined ? 0 : belowHigh);
    return inRange({ flags, field: name, low: after?.value ?? '', high: before?.value ?? '' });
  }

  #terms(name: string, values: readonly string[], path: string): Condition {
    this.#count(values.length, path);
    return anyValue(name, values);
  }

  #range(name: string, bounds: readonly Bound[], path: string): Condition {
    if (bounds.length === 0) return true;
    this.#count(bounds.length, path);
    const flagOf = ({ operator }: Bound): number => boundFlags.get(operator) ?? 0;
    const flags = bounds.reduce((sum, bound) => sum | flagOf(bound), 0);
    if (bounds.length > 1 && ((flags & lowFlags) === 0 || (flags & highFlags) === 0 || bounds.length > 2)) {
      throw invalid(path, 'must have at most one lower and one upper bound', 'invalid_range');
    }
    for (const bound of bounds) assertBound(bound);
    const low = bounds.find((bound) => (flagOf(bound) & lowFlags) !== 0)?.value;
    const high = bounds.find((bound) => (flagOf(bound) & lowFlags) === 0)?.value;
    if (low !== undefined && high !== undefined && low.startsWith('"') !== high.startsWith('"')) {
      throw invalid(path, 'must have bounds of one type', 'invalid_type');
    }
    return inRange({ flags, field: name, low: low ?? '', high: high ?? '' });
  }

  /** A list without values counts as one. */
  #count(values: number, path: string): void {
    this.#values += Math.max(1, values);
    if (this.#values > conditionValuesMax) {
      throw invalid(path, `where must compare with at most ${conditionValuesMax} values`, 'too_big');
    }
  }
}

interface Bound {
  readonly operator: string;
  /** In canonical form. */
  readonly value: string;
  readonly path: string;
}

/** Refuses a bound that is neither a string nor a number whose exact value the engine can order. */
function assertBound({ value, path }: Pick<Bound, 'value' | 'path'>): void {
  if (!isNumber(value) && !isString(value))
    throw invalid(path, 'must be a number or a string', 'invalid_type');
  if (boundBytesOf(value) > boundBytesMax) {
    throw invalid(path, `must have at most ${boundBytesMax} bytes`, 'too_big');
  }
  if (isNumber(value) && !isInDoubleRange(value)) {
    throw invalid(path, 'must lie within the range of a double', 'too_big');
  }
}

/** @throws {ServiceError} when a bound is no date. */
function assertDate(bound: Bound): void {
  assertBound(bound);
  if (isString(bound.value) && instantOf(textOf(bound.value)) !== undefined) return;
  throw invalid(
    bound.path,
    'must be a date, such as "2026-11-27", "2026-11-27T09:30:00Z" or "2026-11-27 10:30:00+01:00"',
    'invalid_format',
  );
}

function itemsOf(text: string, path: string): readonly string[] {
  if (!text.startsWith('[')) throw invalid(path, 'must be an array of values', 'invalid_type');
  return canonicalItems(text);
}

function unknownOperator(operator: string, path: string): ServiceError {
  const own = ownWordFor(operator);
  const shown = operator.slice(0, nameLengthMax).toWellFormed();
  return own === undefined
    ? invalid(path, `must hold no operators but ${operators.join(', ')}`, 'unrecognized_keys')
    : invalid(path, `must not hold ${shown}: write ${own}`, 'unrecognized_keys');
}

function textOf(token: string): string {
  return JSON.parse(token) as string;
}
