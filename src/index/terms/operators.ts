/** The operators of conditions, and the words that other products have for them. */
import { canonicalMembers } from './canonical-json.ts';

export const operators = [
  'in',
  'not',
  'gt',
  'gte',
  'lt',
  'lte',
  'contains',
  'contains_any',
  'contains_all',
  'exists',
  'starts_with',
  'after',
  'before',
] as const;

/** Our operator -> the words of other products for it, in lower case, letters alone. */
const foreignWords: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(operators.map((operator) => [operator, [operator.replace('_', '')]])),
  gt: ['gt', '>', 'greaterthan'],
  gte: ['gte', '>=', 'ge', 'greaterthanequal', 'greaterthanorequal'],
  lt: ['lt', '<', 'lessthan'],
  lte: ['lte', '<=', 'le', 'lessthanequal', 'lessthanorequal'],
  in: ['in', 'any', 'oneof', 'terms'],
  not: ['not', 'ne', 'neq', '!=', 'notequal', 'notequals'],
  contains: ['contains', 'includes', 'arraycontains'],
  contains_any: ['containsany', 'arraycontainsany', 'overlaps'],
  contains_all: ['containsall', 'arraycontainsall', 'all'],
  starts_with: ['startswith', 'beginswith', 'prefix'],
  '{"not":{"in":[...]}}': ['nin', 'notin', 'except'],
  '{"exists":false}': ['isnull', 'isempty', 'notexists'],
  'the value alone, without an operator': ['eq', '=', '==', 'equal', 'equals', 'match', 'term'],
  'gt, gte, lt or lte': ['range', 'between'],
};
const ownWords = new Map(
  Object.entries(foreignWords).flatMap(([own, words]) => words.map((word) => [word, own])),
);

/** Our operator in place of this one; `undefined` if no product is known to have it. */
export function ownWordFor(operator: string): string | undefined {
  const letters = operator.toLowerCase().replaceAll(/[^a-z]/g, '');
  return ownWords.get(letters === '' ? operator : letters);
}

/** A field of a filter whose value looks like operators, which a filter compares as a value. */
export function fieldWithOperators(filterText: string): string | undefined {
  for (const [name, value] of canonicalMembers(filterText)) {
    if (!value.startsWith('{')) continue;
    const keys = [...canonicalMembers(value).keys()].map((key) => JSON.parse(key) as string);
    if (keys.length > 0 && keys.every((key) => ownWordFor(key) !== undefined)) {
      return JSON.parse(name) as string;
    }
  }
  return undefined;
}

/** The word of another product that joins conditions, at the beginning of a filter or a condition. Here it names a field. */
export function joiningWordIn(text: string | undefined): string | undefined {
  return /^\s*\{\s*"(\$?(?:must|should|must_not|and|or|nor|bool))"\s*:\s*[[{]/i.exec(text ?? '')?.[1];
}
