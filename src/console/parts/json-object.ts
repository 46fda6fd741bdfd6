/** Reads a JSON object that a person wrote. */
import { repeatedName } from '../../repeated-names.ts';
import type { JsonObject } from '../api.ts';

/** Throws an error that says what is wrong. */
export function jsonObject(name: string, text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is no JSON object`);
  const repeated = repeatedName(text);
  if (repeated !== undefined) throw new Error(`${name}: ${repeated.join('.')} occurs twice in one object`);
  return value as JsonObject;
}
