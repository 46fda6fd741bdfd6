/** Reads a JSON file of an export. A file that cannot be read, or is something else, is an error of the input. */
import { readFile } from 'node:fs/promises';
import type { z } from 'zod';
import { issuesInWords } from '../../input/issue-words.ts';
import { inputError, messageOf } from '../failure.ts';

export async function readJsonFile<T extends z.ZodType>(schema: T, file: string): Promise<z.output<T>> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw inputError(`cannot read ${file}: ${messageOf(error)}`, error);
  }
  const result = schema.safeParse(value);
  if (!result.success) throw inputError(`${file}: ${issuesInWords(result.error)}`);
  return result.data;
}
