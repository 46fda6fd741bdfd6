/**
 * Leaves out of metadata what files of other programs hold beside a text: its vectors, and the text or the metadata of the
 * row a second time. They would come back in every result, and soon fill the 16 KiB that metadata may have.
 */
import { isDeepStrictEqual } from 'node:util';
import { isObject, isRawJson } from '../json.ts';

export const numbersMax = 64;
/** A shorter string may equal the text by chance: a name, a label. */
const textLengthMin = 64;

interface LeanOptions {
  readonly text: string;
  readonly textField: string;
  /** The object `metadata` of the row. */
  readonly given: Readonly<Record<string, unknown>>;
  /** Fields that stay as they are, by their paths. */
  readonly kept: readonly string[];
}

export interface LeanMetadata {
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Paths such as `node.embedding`: arrays of more than 64 numbers. */
  readonly arrays: ReadonlySet<string>;
  /** Paths of members that repeat the text, or the metadata of the row. */
  readonly repeats: ReadonlySet<string>;
}

/** The metadata must not nest deeply. */
export function leanMetadata(
  metadata: Readonly<Record<string, unknown>>,
  { text, textField, given, kept }: LeanOptions,
): LeanMetadata {
  const arrays = new Set<string>();
  const repeats = new Set<string>();
  const isRepeat = (name: string, value: unknown): boolean =>
    typeof value === 'string'
      ? text !== '' && value === text && (name === textField || text.length >= textLengthMin)
      : name === 'metadata' && isDeepStrictEqual(value, given);
  const membersOf = (object: Readonly<Record<string, unknown>>, parent: string): Record<string, unknown> => {
    const members: [string, unknown][] = [];
    for (const [name, value] of Object.entries(object)) {
      const place = parent + name;
      if (kept.includes(place)) members.push([name, value]);
      else if (isManyNumbers(value)) arrays.add(place);
      else if (isRepeat(name, value)) repeats.add(place);
      else members.push([name, inner(value, `${place}.`)]);
    }
    return Object.fromEntries(members);
  };
  const inner = (value: unknown, parent: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => inner(item, parent));
    return isObject(value) ? membersOf(value, parent) : value;
  };
  return { metadata: membersOf(metadata, ''), arrays, repeats };
}

/** An array of numbers or of such arrays, or its text as CSV has it. */
function isManyNumbers(value: unknown): boolean {
  if (typeof value === 'string') return numbersInText(value) > numbersMax;
  return Array.isArray(value) && numbersIn(value) > numbersMax;
}

/** 0 if the array holds anything else. null stands for NaN. */
function numbersIn(array: readonly unknown[]): number {
  let numbers = 0;
  for (const item of array) {
    const isNumber = typeof item === 'number' || item === null || isRawJson(item);
    const found = isNumber ? 1 : Array.isArray(item) ? numbersIn(item) : 0;
    if (found === 0) return 0;
    numbers += found;
  }
  return numbers;
}

/** JSON and Python write `[0.1, 0.2]`, numpy `[0.1 0.2]`. */
function numbersInText(text: string): number {
  const trimmed = text.trim();
  const isArray = trimmed.startsWith('[') && trimmed.endsWith(']') && /^[-+.\deE,\s[\]]+$/.test(trimmed);
  return isArray ? trimmed.split(/[\s,[\]]+/).length - 2 : 0;
}
