/**
 * A condition as a tree, and as the steps that the engine evaluates (native/index/condition.h).
 *
 * The tree is simplified while it is made. A condition that every document meets is `true`, one that no document can meet is
 * `false`, and neither is ever a part of another condition. So the number of steps is a small multiple of the number of values,
 * and a caller that must refuse a condition without effect finds it as `true`.
 */
import { isPath } from './field-path.ts';
import { termBytes, writeTerm } from './metadata-terms.ts';
import { isBound } from './value-order.ts';

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

/**
 * Which values of a field a range compares: numbers, strings and the like, dates, the items of arrays, any value at all, or strings
 * by their beginning, which is the lower bound.
 */
export const comparedFlags = { values: 0, dates: 16, items: 32, presence: 48, prefix: 64 } as const;
const comparedMask = 112;

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

/** The tests that a document must meet, whatever else it meets. */
export function requiredLeaves(condition: Condition): readonly Leaf[] {
  if (typeof condition === 'boolean' || condition.kind === 'not') return [];
  if (!('parts' in condition)) return [condition];
  return condition.kind === 'all' ? condition.parts.flatMap(requiredLeaves) : [];
}

/** The compared kind of values (`comparedFlags`); `undefined` if the test is no range. */
export function comparedBy(test: Leaf): number | undefined {
  return test.kind === 'range' ? test.flags & comparedMask : undefined;
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
      appendEqual(test, steps);
      return;
    case 'range':
      steps.push(rangeStep(test));
      return;
    case 'not':
      append(test.part, steps);
      steps.push(Buffer.of(stepKinds.not));
      return;
    default:
      appendJoined(test.kind, test.parts, (part) => append(part, steps), steps);
  }
}

/**
 * Records have terms of top-level fields alone. A field with dots may be nested, so its scalars are compared with its values. Arrays,
 * objects and what is too long to be compared are found by their terms, in top-level fields of that very name.
 */
function appendEqual(
  { field, values }: Extract<Test, { readonly kind: 'terms' }>,
  steps: Uint8Array[],
): void {
  const isCompared = (value: string): boolean => isPath(field) && (isBound(value) || /^[tfn]/.test(value));
  const compared = [...values].filter(isCompared);
  const rest = [...values].filter((value) => !isCompared(value));
  const flags = comparedFlags.values | rangeFlags.lowItself | rangeFlags.highItself;
  const parts = compared.map((value) => rangeStep({ flags, field, low: value, high: value }));
  if (rest.length > 0) parts.push(termStep(field, rest));
  appendJoined('any', parts, (part) => steps.push(part), steps);
}

function rangeStep({ flags, field, low, high }: Range): Uint8Array {
  return Buffer.concat([Buffer.of(stepKinds.range, flags), ...[field, low, high].map(sized)]);
}

function termStep(field: string, values: readonly string[]): Uint8Array {
  const terms = Buffer.alloc(values.length * termBytes);
  let offset = 0;
  for (const value of values) offset += writeTerm(terms, offset, field, value);
  return Buffer.concat([counted('terms', values.length), terms]);
}

/** Joins each part at once, so that the engine holds no more sets at a time than conditions are nested. */
function appendJoined<Part>(
  kind: 'all' | 'any',
  parts: readonly Part[],
  appendPart: (part: Part) => void,
  steps: Uint8Array[],
): void {
  for (const [place, part] of parts.entries()) {
    appendPart(part);
    if (place > 0) steps.push(counted(kind, 2));
  }
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
