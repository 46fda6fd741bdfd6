/** Filters of LlamaIndex.TS as conditions of the service's `where`. */
import type { MetadataFilter, MetadataFilters } from '@llamaindex/core/vector-store';

type Operators = Readonly<Record<string, unknown>>;
export type Condition = Readonly<Record<string, Operators | readonly Condition[]>>;

/** How deep the service nests `any_of`. */
const depthMax = 3;

const operators: Readonly<Record<string, (value: MetadataFilter['value']) => Operators>> = {
  '==': (value) => ({ in: [value] }),
  '!=': (value) => ({ not: { in: [value] } }),
  '>': (value) => ({ gt: value }),
  '>=': (value) => ({ gte: value }),
  '<': (value) => ({ lt: value }),
  '<=': (value) => ({ lte: value }),
  in: (value) => ({ in: value }),
  nin: (value) => ({ not: { in: value } }),
  any: (value) => ({ contains_any: value }),
  all: (value) => ({ contains_all: value }),
  contains: (value) => ({ contains_all: [value] }),
  // The field is missing, or its value is null or an empty array.
  is_empty: () => ({ not: { exists: true, not: { in: [null, []] } } }),
};

export function whereOf({ filters, condition }: MetadataFilters): Condition {
  const conditions = filters.map(conditionOf);
  return condition === 'or' ? { any_of: conditions } : allOf(conditions);
}

/**
 * An object of `where` has each field, and each operator of a field, once. More of them are nested in `any_of`.
 *
 * @throws {TypeError} where they are more than the service nests.
 */
export function allOf(conditions: readonly Condition[], depth = 0): Condition {
  const joined = new Map<string, Condition[string]>();
  const rest: Condition[] = [];
  for (const [name, value] of conditions.flatMap((condition) => Object.entries(condition))) {
    const before = joined.get(name);
    const both = before === undefined ? value : bothOf(before, value);
    if (both === undefined) rest.push({ [name]: value });
    else joined.set(name, both);
  }
  if (rest.length === 0) return Object.fromEntries(joined);
  if (depth === depthMax)
    throw new TypeError(`a search cannot hold this filter: it nests more than ${depthMax} deep`);
  const alternatives = joined.get('any_of');
  const nested = isAlternatives(alternatives) ? alternatives : [{}];
  joined.set(
    'any_of',
    nested.map((one) => allOf([one, ...rest], depth + 1)),
  );
  return Object.fromEntries(joined);
}

function isAlternatives(value: Condition[string] | undefined): value is readonly Condition[] {
  return Array.isArray(value);
}

/** Operators of a field that say what both say. `undefined`: they do not fit into one object. */
function bothOf(one: Condition[string], other: Condition[string]): Operators | undefined {
  if (isAlternatives(one) || isAlternatives(other)) return undefined;
  const both: Record<string, unknown> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    both[name] = name in one ? joins[name]?.(one[name], value) : value;
    if (both[name] === undefined) return undefined;
  }
  // A range has one lower and one upper bound.
  return ('gt' in both && 'gte' in both) || ('lt' in both && 'lte' in both) ? undefined : both;
}

/** An array that has all items of two lists has all items of each. */
const joins: Readonly<Record<string, (one: unknown, other: unknown) => unknown>> = {
  contains_all: listOf,
  not: notOf,
};

function listOf(one: unknown, other: unknown): readonly unknown[] | undefined {
  return Array.isArray(one) && Array.isArray(other) ? [...one, ...other] : undefined;
}

function notOf(one: unknown, other: unknown): Operators | undefined {
  const [{ in: values, ...rest }, { in: others, ...othersRest }] = [one as Operators, other as Operators];
  const list = Object.keys({ ...rest, ...othersRest }).length === 0 ? listOf(values, others) : undefined;
  return list && { in: list };
}

function conditionOf({ key, operator, value }: MetadataFilter): Condition {
  const operatorsOf = operators[operator];
  if (operatorsOf === undefined) throw new TypeError(`the service has no operator \`${operator}\``);
  if (key === 'any_of') throw new TypeError('a search cannot compare a field that is called `any_of`');
  return { [key]: operatorsOf(value) };
}
