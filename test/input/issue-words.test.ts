/** Every kind of zod's findings is said in words for the one who sent or wrote the value. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { issuesInWords } from '../../src/input/issue-words.ts';

it.each([
  [z.object({ a: z.string() }), {}, 'a is required'],
  [z.object({ a: z.string() }), { a: 1 }, 'a must be a string, not number'],
  [z.object({ a: z.number() }), { a: Number.NaN }, 'a must be a number'],
  [z.object({ a: z.coerce.number() }), { a: 'x' }, 'a must be a number'],
  [z.object({ a: z.int() }), { a: 1.5 }, 'a must be a whole number'],
  [z.object({ a: z.number().min(2) }), { a: 1 }, 'a must be at least 2'],
  [z.object({ a: z.bigint().max(2n) }), { a: 3n }, 'a must be at most 2'],
  [z.object({ a: z.string().min(1) }), { a: '' }, 'a must not be empty'],
  [z.object({ a: z.string().max(2) }), { a: 'abc' }, 'a must have at most 2 characters'],
  [z.object({ a: z.array(z.string()).min(1) }), { a: [] }, 'a must have at least 1 item'],
  [z.object({ a: z.enum(['full', 'read']) }), { a: 'x' }, 'a must be "full" or "read"'],
  [z.object({ a: z.literal('x') }), { a: 'y' }, 'a must be "x"'],
  [z.object({ a: z.uuid() }), { a: 'y' }, 'a must be a UUID'],
  [z.object({ a: z.iso.datetime() }), { a: 'y' }, 'a must be a time like 2026-11-23T10:00:00Z'],
  [z.object({ a: z.string().regex(/^x$/) }), { a: 'y' }, 'a has the wrong form'],
  [z.object({ a: z.string().regex(/^x$/, 'must be x') }), { a: 'y' }, 'a must be x'],
  [z.object({ a: z.union([z.string(), z.number()]) }), { a: true }, 'a is not valid'],
  [z.strictObject({}), { a: 1, b: 2 }, 'unknown properties a, b'],
  [z.object({ a: z.object({ b: z.string() }), c: z.string() }), { a: {} }, 'a.b is required; c is required'],
])('%#: %o', (schema, value, words) => {
  const result = schema.safeParse(value);
  expect(issuesInWords(result.error as z.ZodError)).toBe(words);
});
