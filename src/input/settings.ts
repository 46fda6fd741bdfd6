/**
 * Values that people write as text, in variables and in options. The message about a bad value says what is allowed. It
 * quotes the value unless that may hold a secret.
 */
import { z } from 'zod';
import { alternatives } from './issue-words.ts';

const got = (text: unknown): string => `, got ${JSON.stringify(text)}`;

/** Decimal digits alone. Other numbers of JavaScript, such as 0x50, are mistakes here. */
export function wholeNumber(minimum: number, maximum: number) {
  return number(`a whole number from ${minimum} to ${maximum}`, /^[+-]?\d+$/, minimum, maximum);
}

export function numberIn(minimum: number, maximum: number) {
  return number(`a number from ${minimum} to ${maximum}`, /^[+-]?(\d+\.?\d*|\.\d+)$/, minimum, maximum);
}

function number(words: string, form: RegExp, minimum: number, maximum: number) {
  return z.string().transform((text, context) => {
    const trimmed = text.trim();
    const value = Number(trimmed);
    if (form.test(trimmed) && value >= minimum && value <= maximum) return value;
    context.addIssue({ code: 'custom', message: `must be ${words}${got(text)}` });
    return z.NEVER;
  });
}

export function oneOf<const Words extends readonly string[]>(...words: Words) {
  return z.enum(words, {
    error: ({ input }) => `must be ${alternatives(words)}${got(input)}`,
  });
}

/** `words` says what is allowed. The value is not quoted, because it may hold a password. */
export function fitting(words: string, fits: (text: string) => boolean) {
  return z.string().refine(fits, words);
}

export function wordOrNumber<const Word extends string>(word: Word, minimum: number, maximum: number) {
  return z.union([z.literal(word), wholeNumber(minimum, maximum)], {
    error: ({ input }) => `must be ${word}, or a whole number from ${minimum} to ${maximum}${got(input)}`,
  });
}

export const nonEmpty = z.string().min(1, 'must not be empty');

/**
 * The known name that was probably meant: one with all words of `name`, which `_` joins, or else one with mostly the same
 * letters. `undefined` if there is none.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const words = name.split('_');
  const [nearest] = known
    .map((candidate) => {
      const edits = editsBetween(name, candidate);
      const hasWords = words.every((word) => candidate.split('_').includes(word));
      return { candidate, edits, hasWords, isNear: edits < Math.max(name.length, candidate.length) / 2 };
    })
    .filter(({ hasWords, isNear }) => hasWords || isNear)
    .toSorted((a, b) => Number(b.hasWords) - Number(a.hasWords) || a.edits - b.edits);
  return nearest?.candidate;
}

/** Letters to insert, delete or replace (Levenshtein). */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, place) => place);
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1)
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (a[i] === b[j] ? 0 : 1)));
    row = next;
  }
  return row.at(-1)!;
}
