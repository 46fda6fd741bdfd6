/**
 * Match terms: for each text in the match fields of an index, a record has the hash of its field and its loose key, beside its
 * metadata terms. They tell which documents have a word of a query as a value.
 */
import { hash } from 'node:crypto';
import { valuesAt } from './field-path.ts';
import { looseKey } from './loose-keys.ts';
import { metadataTerms, termBytes } from './metadata-terms.ts';

/** Longer values do not match. UTF-8. */
export const matchBytesMax = 256;
/** A metadata term hashes a JSON string first, so none begins like this. The number is that of the rules of loose keys. */
const prefix = 'match1';

type JsonObject = Readonly<Record<string, unknown>>;

/** The terms of loose keys in fields (names or paths, as `match_fields` has them), concatenated key by key: 16 bytes each. */
export function termsOfKeys(keys: readonly string[], fields: readonly string[]): Uint8Array {
  const heads = fields.map((field) => `${prefix}:${JSON.stringify(field)}:`);
  const terms = Buffer.alloc(keys.length * fields.length * termBytes);
  let offset = 0;
  for (const key of keys)
    for (const head of heads) {
      // The digest is a string of bytes, as in metadata terms.
      offset += terms.write(hash('sha256', head + key, 'binary'), offset, termBytes, 'binary');
    }
  return terms;
}

/** The terms of a record, concatenated: those of its metadata, and those of its match fields. */
export function recordTerms(objectText: string, matchFields: readonly string[]): Uint8Array {
  const terms = metadataTerms(objectText);
  return matchFields.length === 0 ? terms : Buffer.concat([terms, matchTerms(objectText, matchFields)]);
}

/**
 * The terms of the texts in these fields, concatenated, each once: 16 bytes each. Texts share the bytes of the metadata, and
 * two fields share no text, so there are fewer terms than a record may have.
 */
export function matchTerms(objectText: string, fields: readonly string[]): Uint8Array {
  const object = JSON.parse(objectText) as JsonObject;
  const terms = fields.map((field) => {
    const keys = new Set(textsOf(object, field).flatMap((text) => looseKey(text) ?? []));
    return termsOfKeys([...keys], [field]);
  });
  return Buffer.concat(terms);
}

/** A text in a match field. */
export interface MatchedText {
  readonly field: string;
  readonly value: string;
}

/** The loose keys of the texts in these fields, each with the first text that has it, in the order of the fields. */
export function matchedTexts(
  objectText: string,
  fields: readonly string[],
): ReadonlyMap<string, MatchedText> {
  const object = JSON.parse(objectText) as JsonObject;
  const found = new Map<string, MatchedText>();
  for (const field of fields) {
    for (const value of textsOf(object, field)) {
      const key = looseKey(value);
      if (key !== undefined && !found.has(key)) found.set(key, { field, value });
    }
  }
  return found;
}

/** The strings of a field, and those in its arrays, that are short enough to match. */
function textsOf(object: JsonObject, field: string): readonly string[] {
  return valuesAt(object, field).values.flatMap((value) =>
    (Array.isArray(value) ? value : [value]).filter(
      (item): item is string => typeof item === 'string' && Buffer.byteLength(item) <= matchBytesMax,
    ),
  );
}
