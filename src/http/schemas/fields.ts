/**
 * Building blocks of the wire schemas. A check that JSON Schema can express appears in the document by
 * itself; the others (bytes, code points, duplicates) state their rule in the description.
 */
import { z } from 'zod';
import { codePoints, inspectJsonValue, serialisedBytes } from '../json-value.ts';
import {
  docIdLengthMax,
  documentsMax,
  metadataBytesMax,
  metadataDepthMax,
  nameLengthMax,
  queryBytesMax,
  textBytesMax,
} from '../limits.ts';

/** Adds an issue with a code of ours (zod's own custom issues all read `custom`). */
export function addIssue(
  context: z.core.$RefinementCtx,
  code: string,
  message: string,
  path: PropertyKey[] = [],
): void {
  context.addIssue({ code: 'custom', message, path, params: { code } });
}

/** Identity and display strings: length in Unicode code points, and no lone surrogates. */
function codePointString(lengthMax: number) {
  return z.string().superRefine((text, context) => {
    const length = codePoints(text, lengthMax);
    if (length < 1) addIssue(context, 'too_small', 'must not be empty');
    if (length > lengthMax) addIssue(context, 'too_big', `must have at most ${lengthMax} code points`);
    if (!text.isWellFormed()) addIssue(context, 'invalid_unicode', 'must be well-formed Unicode');
  });
}

export const Name = codePointString(nameLengthMax).meta({ minLength: 1, maxLength: nameLengthMax });

export const DocId = codePointString(docIdLengthMax)
  .superRefine((docId, context) => {
    if (docId === '.' || docId === '..')
      addIssue(context, 'reserved', '"." and ".." cannot be addressed in a path');
  })
  .meta({
    minLength: 1,
    maxLength: docIdLengthMax,
    description:
      'Identity of the document within one index: 1 to 255 Unicode code points; `.` and `..` are refused.',
    example: 'guide-17',
  });

/**
 * Text to be encoded: limited in UTF-8 bytes. A lone surrogate (half an emoji, cut by the client) reads as
 * U+FFFD, which is what every UTF-8 encoder would send in its place.
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

export const Query = encodableText(queryBytesMax, 'Not empty; at most 8 KiB as UTF-8.');
export const Text = encodableText(
  textBytesMax,
  'Source text; not empty; at most 100 KiB as UTF-8. Never stored.',
);

export type JsonObject = Readonly<Record<string, unknown>>;

/** A customer-defined JSON object, bounded in bytes and depth; its keys are data whatever their names. */
export function jsonObject(
  description: string,
  check?: (value: JsonObject, context: z.core.$RefinementCtx) => void,
) {
  return z
    .custom<JsonObject>()
    .superRefine((value: unknown, context) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        return addIssue(context, 'invalid_type', 'must be an object');
      }
      const facts = inspectJsonValue(value, metadataDepthMax);
      // Depth first: serialising recurses as deep as the value.
      if (facts.depth > metadataDepthMax) {
        return addIssue(context, 'too_deep', `must nest at most ${metadataDepthMax} levels`);
      }
      if (serialisedBytes(value) > metadataBytesMax) {
        return addIssue(context, 'too_big', `must serialise to at most ${metadataBytesMax} bytes`);
      }
      if (facts.holdsNonFinite)
        addIssue(context, 'out_of_range', 'holds a number beyond the range of a double');
      check?.(value as JsonObject, context);
    })
    .meta({ type: 'object', additionalProperties: true, description });
}

export const Metadata = jsonObject(
  'Customer-defined object, at most 16 KiB serialised and 16 levels deep; returned with results as given. Of a key given twice the last value counts.',
);

export const DocumentInput = z
  .strictObject({
    doc_id: DocId,
    text: Text,
    metadata: Metadata.default({}),
  })
  .meta({ id: 'Document' });

/** 1 to 50 documents with unique ids. */
export const Documents = z
  .preprocess(
    // Counted before any item is looked at: a body has room for millions of wrong ones.
    (value, context) => {
      if (Array.isArray(value) && value.length > documentsMax) {
        addIssue(context, 'too_big', `must have at most ${documentsMax} items`);
        return z.NEVER;
      }
      return value;
    },
    z.array(DocumentInput).min(1).max(documentsMax),
  )
  .superRefine((documents, context) => {
    const seen = new Set<string>();
    for (const [at, { doc_id: docId }] of documents.entries()) {
      if (seen.has(docId))
        addIssue(context, 'duplicate', 'must be unique within the request', [at, 'doc_id']);
      seen.add(docId);
    }
  })
  .meta({ description: 'Documents with unique `doc_id` values.' });

export const IndexId = z.uuid().meta({ description: 'Identifier of the index.' });
export const IndexParams = z.strictObject({ index_id: IndexId });

export const Timestamp = z.iso.datetime().meta({ description: 'ISO 8601, UTC.' });
export const Count = z.int().min(0).meta({ example: 3 });
export const DecimalString = z
  .string()
  .regex(/^\d+$/)
  .meta({ description: 'Decimal integer; calculate with arbitrary precision.', example: '50000000' });

export const RequestUsage = z
  .strictObject({
    input_tokens: Count,
    document_count: Count,
    chunk_count: Count,
    candidate_count: Count,
    latency_ms: Count,
  })
  .meta({ id: 'RequestUsage' });
