/** Says what is wrong with a value, for the person who wrote it. Zod's own messages speak of types of a program. */
import type { z } from 'zod';

export function wordsOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return wordsOfType(issue);
    case 'invalid_value':
      return (
        own(issue.message) ?? `must be ${alternatives(issue.values.map((value) => JSON.stringify(value)))}`
      );
    case 'too_big':
      return wordsOfSize('at most', issue.maximum, issue);
    case 'too_small':
      return wordsOfSize('at least', issue.minimum, issue);
    case 'invalid_format':
      return own(issue.message) ?? formats[issue.format] ?? 'has the wrong form';
    case 'unrecognized_keys':
      return `unknown ${issue.keys.length === 1 ? 'property' : 'properties'} ${issue.keys.join(', ')}`;
    default:
      return own(issue.message) ?? 'is not valid';
  }
}

export function issuesInWords({ issues }: z.core.$ZodError): string {
  return issues
    .map((issue) =>
      issue.path.length === 0 ? wordsOf(issue) : `${dottedPath(issue.path)} ${wordsOf(issue)}`,
    )
    .join('; ');
}

export function dottedPath(path: readonly PropertyKey[]): string {
  return path.map(String).join('.');
}

export function alternatives(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function wordsOfType(issue: z.core.$ZodIssueInvalidType): string {
  const mine = own(issue.message);
  if (mine !== undefined) return mine;
  const received = /received (\w+)$/.exec(issue.message)?.[1];
  if (received === 'undefined') return 'is required';
  if (issue.expected === 'int') return 'must be a whole number';
  const wanted = `must be ${typeNames[issue.expected] ?? issue.expected}`;
  return received === undefined || received === 'NaN' ? wanted : `${wanted}, not ${received}`;
}

function wordsOfSize(
  most: string,
  bound: number | bigint,
  { origin }: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall,
): string {
  if (origin === 'array') return `must have ${most} ${bound} ${bound === 1 ? 'item' : 'items'}`;
  if (origin !== 'string') return `must be ${most} ${bound}`;
  return most === 'at least' && bound === 1 ? 'must not be empty' : `must have ${most} ${bound} characters`;
}

/** The message that a schema gives. Zod's own messages begin with these words. */
function own(message: string): string | undefined {
  return /^(Invalid|Too (big|small)|Unrecognized)/.test(message) ? undefined : message;
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
};

const formats: Readonly<Record<string, string>> = {
  uuid: 'must be a UUID',
  datetime: 'must be a time like 2026-11-23T10:00:00Z',
  date: 'must be a day like 2026-11-23',
  url: 'must be a URL',
};
