/** Filters of LlamaIndex.TS as conditions of the service's `where`. */
import type { MetadataFilter, MetadataFilters } from '@llamaindex/core/vector-store';

type Operators = Readonly<Record<string, unknown>>;
export type Condition = Readonly<Record<string, Operators | readonly Condition[]>>;

const operators: Readonly<Record<string, (value: MetadataFilter['value']) => Operators>> = {
  '==': (value) => ({ in: [value] }),
  '!=': (value) => ({ not: value }),
  '>': (value) => ({ gt: value }),
  '>=': (value) => ({ gte: value }),
  '<': (value) => ({ lt: value }),
  '<=': (value) => ({ lte: value }),
  in: (value) => ({ in: value }),
  nin: (value) => ({ not: { in: value } }),
  any: (value) => ({ contains_any: value }),
  all: (value) => ({ contains_all: value }),
  contains: (value) => ({ contains: value }),
};

export function whereOf({ filters, condition }: MetadataFilters): Condition {
  const conditions = filters.map(conditionOf);
  return condition === 'or' ? { any_of: conditions } : allOf(conditions);
}

/** `where` has each field, each operator of a field, and `any_of` once. */
export function allOf(conditions: readonly Condition[]): Condition {
  const joined: Record<string, Condition[string]> = {};
  for (const [name, value] of conditions.flatMap((condition) => Object.entries(condition))) {
    const before = joined[name];
    joined[name] = before === undefined ? value : both(name, before, value);
  }
  return joined;
}

function both(name: string, one: Condition[string], other: Condition[string]): Operators {
  const [
    { contains: a, contains_all: allOfOne, ...rest },
    { contains: b, contains_all: allOfOther, ...others },
  ] = [one as Operators, other as Operators];
  if (name === 'any_of' || Object.keys(others).some((operator) => operator in rest))
    throw new TypeError(`\`where\` cannot hold two such conditions on \`${name}\` at once`);
  // An array that has each of several items has all of them.
  const lists = [a === undefined ? undefined : [a], allOfOne, b === undefined ? undefined : [b], allOfOther];
  const items = lists.filter((list) => list !== undefined);
  return { ...rest, ...others, ...(items.length === 0 ? {} : { contains_all: items.flat() }) };
}

function conditionOf({ key, operator, value }: MetadataFilter): Condition {
  // The field is missing, or its value is null or an empty array.
  if (operator === 'is_empty')
    return { any_of: [{ [key]: { exists: false } }, { [key]: { in: [null, []] } }] };
  const operatorsOf = operators[operator];
  if (operatorsOf === undefined) throw new TypeError(`the service has no operator \`${operator}\``);
  return { [key]: operatorsOf(value) };
}
