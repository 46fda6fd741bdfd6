import type { z } from 'zod';
import { CommandFailure } from '../failure.ts';
import { issuesInWords } from '../../issue-words.ts';
import type { Answer } from './exchange.ts';

/** The answer's body, if it is what the command line knows; unknown fields are ignored. */
export function checked<T>(schema: z.ZodType<T>, answer: Answer): T {
  const result = schema.safeParse(answer.body);
  if (result.success) return result.data;
  throw new CommandFailure('unexpected_response', `unexpected answer: ${issuesInWords(result.error)}`);
}
