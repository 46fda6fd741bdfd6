/**
 * A condition as a tree, and as the steps that the engine evaluates (native/index/condition.h).
 *
 * The tree is simplified while it is made. A condition that every document meets is `true`, one that no document can meet is
 * `false`, and neither is ever a part of another condition. So the number of steps is a small multiple of the number of values,
 * and a caller that must refuse a condition without effect finds it as `true`.
 */
import { termBytes, writeTerm } from './metadata-terms.ts';

export type Condition = boolean | Test;

/** A condition that compares a value. Whether its outcome depends on the document is for `every-document.ts`. */
export type Test =
  /** Values in canonical form. */
  | { readonly kind: 'terms'; readonly field: string; readonly values: ReadonlySet<string> }
  | ({ readonly kind: 'range' } & Range)
  | { readonly kind: 'all' | 'any'; readonly parts: readonly Test[] }
  | { readonly kind: 'not'; readonly part: Test };

export type Leaf = Extract<Test, { readonly field: string }>;

/** Whether a range excludes its bounds or includes them. */
export const rangeFlags = { aboveLow: 1, lowItself: 2, belowHigh: 4, highItself: 8 } as const;

/** Which values of a field a range compares: numbers and strings, dates, the items of arrays, or any value at all. */
export const comparedFlags = { values: 0, dates: 16, items: 32, presence: 48 } as const;

interface Range {
  /** The sum of the flags of its bounds and of the values that it compares. Without bounds the whole range. */
  readonly flags: number;
  /** JSON tokens. */
  readonly field: string;
  readonly low: string;
  readonly high: string;
}

/** A document meets it whose field has one of these values, in canonical form. */
export function anyValue(field: string, values: readonly string[]): Condition {
  return values.length > 0 && { kind: 'terms', field, values: new Set(values) };
}

export function inRange(range: Range): Condition {
  return { kind: 'range', ...range };
}

export function anyValueOf(field: string): Test {
  return { kind: 'range', flags: comparedFlags.presence, field, low: '', high: '' };
}

export function anyDate(field: string): Test {
  return { kind: 'range', flags: comparedFlags.dates, field, low: '', high: '' };
}

/** The tests of fields of which a condition consists. */
export function leavesOf(test: Test): readonly Leaf[] {
  if (test.kind === 'not') return leavesOf(test.part);
  return 'parts' in test ? test.parts.flatMap(leavesOf) : [test];
}

/** The compared kind of values (`comparedFlags`); `undefined` if the test is no range. */
export function comparedBy(test: Leaf): number | undefined {
  return test.kind === 'range' ? test.flags & comparedFlags.presence : undefined;
}

/** The fields that a condition compares as dates, each once. */
export function dateFieldsOf(condition: Condition): readonly string[] {
  const leaves = typeof condition === 'boolean' ? [] : leavesOf(condition);
  return [
    ...new Set(leaves.flatMap((leaf) => (comparedBy(leaf) === comparedFlags.dates ? [leaf.field] : []))),
  ];
}

export function allOf(conditions: readonly Condition[]): Condition {
  return conditions.every((one) => one !== false) && joined('all', conditions, true);
}

export function anyOf(conditions: readonly Condition[]): Condition {
  return conditions.some((one) => one === true) || joined('any', conditions, false);
}

export function notOf(condition: Condition): Condition {
  if (typeof condition === 'boolean') return !condition;
  return condition.kind === 'not' ? condition.part : { kind: 'not', part: condition };
}

function joined(kind: 'all' | 'any', conditions: readonly Condition[], ofNone: boolean): Condition {
  const parts = conditions.filter((one) => typeof one !== 'boolean');
  return parts.length > 1 ? { kind, parts } : (parts[0] ?? ofNone);
}

const stepKinds = { terms: 1, range: 2, all: 3, any: 4, not: 5 } as const;

export function stepsOf(condition: Exclude<Condition, true>): Uint8Array {
  if (condition === false) return counted('any', 0);
  const steps: Uint8Array[] = [];
  append(condition, steps);
  return Buffer.concat(steps);
}

function append(test: Test, steps: Uint8Array[]): void {
  switch (test.kind) {
    case 'terms':
      steps.push(counted('terms', test.values.size), termsOf(test));
      return;
    case 'range':
      steps.push(Buffer.of(stepKinds.range, test.flags), ...[test.field, test.low, test.high].map(sized));
      return;
    case 'not':
      append(test.part, steps);
      steps.push(Buffer.of(stepKinds.not));
      return;
    default:
      // Each part is joined at once, so that the engine holds no more sets at a time than conditions are nested.
      for (const [place, part] of test.parts.entries()) {
        append(part, steps);
        if (place > 0) steps.push(counted(test.kind, 2));
      }
  }
}

function termsOf({ field, values }: Extract<Test, { readonly kind: 'terms' }>): Buffer {
  const terms = Buffer.alloc(values.size * termBytes);
  let offset = 0;
  for (const value of values) offset += writeTerm(terms, offset, field, value);
  return terms;
}

function counted(kind: keyof typeof stepKinds, count: number): Buffer {
  const step = Buffer.of(stepKinds[kind], 0, 0);
  step.writeUInt16LE(count, 1);
  return step;
}

function sized(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeUInt16LE(bytes.length);
  return Buffer.concat([length, bytes]);
}
