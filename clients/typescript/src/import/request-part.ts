/** A document of an import, as a request carries it. */
import { jsonText } from '../encoding.ts';
import { MaxsimdError } from '../errors.ts';
import type { Document } from '../types.ts';
import { withIdentifiers, type IdentifierCount, type WithIdentifiers } from './identifiers.ts';
import type { ImportDocument } from './import.ts';
import { addedNames, assertFree, type AddedFields } from './metadata.ts';

/** Throws a `MaxsimdError` where the time is none. */
export function timeText(time: Date | string): string {
  if (typeof time === 'string') return time;
  try {
    return time.toISOString();
  } catch (error) {
    const words = 'expires_at: this is no time: pass a Date, or a string such as 2030-01-01T00:00:00Z';
    throw new MaxsimdError(words, { cause: error });
  }
}

export interface RequestPart {
  readonly expiresAt: string | undefined;
  readonly json: string;
  readonly identifiers: IdentifierCount;
}

/** A document in a request, which its expiry is no part of. An error says why no request can carry it. */
export function requestPart(document: ImportDocument, added: AddedFields): RequestPart | MaxsimdError {
  try {
    const { expires_at: expiry, ...rest } = document;
    const expiresAt = expiry === undefined || expiry === null ? undefined : timeText(expiry);
    assertFree(document, addedNames(added));
    const { metadata, ...identifiers } = withAdded(document, added);
    const json = jsonText({ ...rest, ...(metadata !== undefined && { metadata }) });
    return { expiresAt, json, identifiers };
  } catch (error) {
    if (error instanceof MaxsimdError) return error;
    throw error;
  }
}

/** The metadata of a document with the fields that the import adds. */
function withAdded({ metadata, text }: Document, { keepText, identifiers }: AddedFields): WithIdentifiers {
  const withText = keepText === undefined ? metadata : { ...metadata, [keepText]: text };
  // The service refuses another text.
  if (identifiers === undefined || typeof text !== 'string')
    return { metadata: withText, kept: 0, leftOut: 0 };
  return withIdentifiers(withText, identifiers, text);
}

/** With the comma. */
export function bytesOf({ json }: RequestPart): number {
  return Buffer.byteLength(json) + 1;
}
