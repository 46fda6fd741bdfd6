/** The metadata fields that an import adds to documents. */
import { jsonText } from '../encoding.ts';
import { MaxsimdError } from '../errors.ts';
import type { Document } from '../types.ts';

export const metadataBytesMax = 16 * 1024;

/** Names of metadata fields. */
export interface AddedFields {
  /** Keeps the text. */
  readonly keepText?: string | undefined;
  /** Has the words of the text that look like identifiers. */
  readonly identifiers?: string | undefined;
}

/** Throws a `MaxsimdError` if both are one field. */
export function addedNames({ keepText, identifiers }: AddedFields): readonly string[] {
  const names = [keepText, identifiers].filter((name) => name !== undefined);
  if (new Set(names).size < names.length)
    throw new MaxsimdError(`${JSON.stringify(keepText)} cannot keep both the text and the identifiers`);
  return names;
}

/** Throws a `MaxsimdError` if the metadata have one of the fields that this import adds. */
export function assertFree({ metadata }: Document, fields: readonly string[]): void {
  const taken = fields.find((field) => Object.hasOwn(metadata ?? {}, field));
  if (taken !== undefined) throw new MaxsimdError(`metadata.${taken}: the import adds a field of this name`);
}

export function jsonBytes(value: object): number {
  return Buffer.byteLength(jsonText(value));
}
