/**
 * Building blocks of the wire schemas. Checks that JSON Schema can express appear in the OpenAPI document by themselves. For
 * the others (bytes, code points, duplicates) the description states the rule.
 */
import { z } from 'zod';
import type { DocumentInput } from '../../service/contract.ts';
import { CustomerObject } from '../body/json-body.ts';
import {
  docIdLengthMax,
  indexNamePrefix,
  matchFieldsMax,
  documentsMax,
  fieldNamesMax,
  metadataDepthMax,
  nameLengthMax,
  queryBytesMax,
  textBytesMax,
} from '../limits.ts';

/** Adds an issue with a code of ours; zod calls all of them `custom`. */
export function addIssue(
  context: z.core.$RefinementCtx,
  code: string,
  message: string,
  path: PropertyKey[] = [],
): void {
  context.addIssue({ code: 'custom', message, path, params: { code } });
}

/** Counts Unicode code points; stops at `max` + 1. */
function codePoints(text: string, max: number): number {
  if (text.length > 2 * max) return max + 1;
  let count = 0;
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xff_ff ? 2 : 1) count += 1;
  return count;
}

/** A string whose length counts in Unicode code points, without lone surrogates. */
export function codePointString(lengthMax: number) {
  return z.string().superRefine((text, context) => {
    const length = codePoints(text, lengthMax);
    if (length < 1) addIssue(context, 'too_small', 'must not be empty');
    if (length > lengthMax) addIssue(context, 'too_big', `must have at most ${lengthMax} code points`);
    if (!text.isWellFormed()) addIssue(context, 'invalid_unicode', 'must be well-formed Unicode');
  });
}

export const Name = codePointString(nameLengthMax).meta({ minLength: 1, maxLength: nameLengthMax });

function fieldNames(most: number) {
  return z
    .array(codePointString(nameLengthMax))
    .max(most)
    .superRefine((fields, context) => {
      for (const [at, field] of fields.entries()) {
        if (fields.indexOf(field) < at) addIssue(context, 'duplicate', 'must be unique', [at]);
        if (field.split('.').length > metadataDepthMax) {
          addIssue(context, 'too_deep', `must be a path of at most ${metadataDepthMax} names`, [at]);
        }
      }
    });
}

export const FieldNames = fieldNames(fieldNamesMax).meta({
  description: `Metadata fields, at most ${fieldNamesMax}, of at most ${nameLengthMax} code points. \`author.name\` is the field \`name\` of the object \`author\`, except in documents with a top-level field of that very name.`,
  example: ['kind'],
});

export const MatchFields = fieldNames(matchFieldsMax);

export const DocId = codePointString(docIdLengthMax)
  .superRefine((docId, context) => {
    if (docId === '.' || docId === '..')
      addIssue(context, 'reserved', 'must not be "." or "..", which cannot be part of a URL path');
  })
  .meta({
    minLength: 1,
    maxLength: docIdLengthMax,
    description:
      'Identifies the document within its index. 1 to 255 Unicode code points. `.` and `..` are refused, because no URL path can address them.',
    example: 'bee',
  });

/**
 * A text to encode, limited in UTF-8 bytes. A lone surrogate (half of an emoji that the client cut) becomes U+FFFD, as in
 * every UTF-8 encoder.
 */
function encodableText(bytesMax: number, description: string) {
  return z
    .string()
    .superRefine((text, context) => {
      if (text.length === 0) addIssue(context, 'too_small', 'must not be empty');
      if (Buffer.byteLength(text) > bytesMax)
        addIssue(context, 'too_big', `must have at most ${bytesMax} bytes as UTF-8`);
    })
    .overwrite((text) => text.toWellFormed())
    .meta({ minLength: 1, description });
}

export const Query = encodableText(
  queryBytesMax,
  'Not empty, at most 8 KiB as UTF-8. A model reads a query up to its query length: the default model reads the first 510 tokens. Later text does not change the results, but it counts in `input_tokens`.',
);
export const Text = encodableText(
  textBytesMax,
  'The text to encode. Not empty, at most 100 KiB as UTF-8. It is never stored.',
);

/** A customer-defined JSON object in a request. The reader of the body has bounded it. */
export function customerObject(description: string) {
  // The reader has refused values that are no objects.
  return z
    .instanceof(CustomerObject, { error: 'is required' })
    .meta({ type: 'object', additionalProperties: true, description });
}

export const Metadata = customerObject(
  'Any JSON object of yours; `{}` if absent. At most 16 KiB, white space between tokens not counted, and 16 levels deep. Results return it as it was sent. No object in it may have a name twice.',
);

const DocumentBody = z
  .strictObject({
    doc_id: DocId,
    text: Text,
    metadata: Metadata.optional(),
  })
  .meta({ id: 'Document' });

export const Documents = z
  .array(DocumentBody)
  .min(1)
  .max(documentsMax)
  .superRefine((documents, context) => {
    const seen = new Set<string>();
    for (const [at, { doc_id: docId }] of documents.entries()) {
      if (seen.has(docId))
        addIssue(context, 'duplicate', 'must be unique within the request', [at, 'doc_id']);
      seen.add(docId);
    }
  })
  .meta({ description: 'Documents with unique `doc_id` values.' });

export function documentInputs(documents: z.output<typeof Documents>): DocumentInput[] {
  return documents.map(({ doc_id: docId, text, metadata }) => ({
    docId,
    text,
    metadata: metadata?.text ?? '{}',
  }));
}

export function returnedObject(description: string) {
  return z.record(z.string(), z.unknown()).meta({ type: 'object', additionalProperties: true, description });
}

/** RFC 9562 section 4: a UUID is read in either case. It is stored in lower case. */
export const IndexId = z
  .uuid('must be the id of an index, a UUID, or name: and the name of one')
  .toLowerCase()
  .meta({ description: 'Identifier of the index: the `id` in the answer that created it.' });

/** The name in the address of an index; `undefined` = the address is an id. */
export function nameIn(address: string): string | undefined {
  return address.startsWith(indexNamePrefix) ? address.slice(indexNamePrefix.length) : undefined;
}

/** An id in lower case, or a name behind its prefix. */
export const IndexAddress = z
  .string()
  .superRefine((address, context) => {
    const name = nameIn(address);
    const { error } = name === undefined ? IndexId.safeParse(address) : Name.safeParse(name);
    for (const { message } of error?.issues ?? []) addIssue(context, 'invalid_format', message);
  })
  .overwrite((address) => (nameIn(address) === undefined ? address.toLowerCase() : address))
  .meta({
    description:
      'The `id` of the index, or as an addition `name:` and its name, such as `name:handbook`; in a URL percent-encoded, with `/` as `%2F`. A request finds the index that has the name when it arrives.',
  });
export const IndexParams = z.strictObject({ index_id: IndexAddress });

export const Timestamp = z.iso.datetime().meta({ description: 'ISO 8601, UTC.' });
/** Times that RFC 3339 can write with any offset, and that every client can read: Python knows no year 0. */
const firstTime = '0001-01-01T00:00:00Z';
const lastTime = '9999-12-31T23:59:59Z';

/** In milliseconds since the epoch. */
export const ExpiresAt = z.iso
  .datetime({ offset: true, error: 'must be a time like 2026-11-23T10:00:00Z; in a URL, + is %2B' })
  .superRefine((text, context) => {
    const ms = Date.parse(text);
    if (ms < Date.parse(firstTime) || ms >= Date.parse(lastTime) + 1000)
      addIssue(context, 'invalid', `must be a time from ${firstTime} to ${lastTime}`);
  })
  .transform((text) => Date.parse(text));
export const Count = z.int().min(0).meta({ example: 3 });
export const DecimalString = z.string().regex(/^\d+$/, 'must be a string of decimal digits').meta({
  description: 'An integer as a decimal string. Calculate with arbitrary precision.',
  example: '50000000',
});

export const RequestUsage = z
  .strictObject({
    input_tokens: Count,
    document_count: Count,
    chunk_count: Count,
    candidate_count: Count,
    latency_ms: Count,
  })
  .meta({ id: 'RequestUsage' });
