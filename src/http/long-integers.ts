/**
 * Integers beyond 2^53 (64-bit ids, nanosecond timestamps) in customer objects keep their digits: a body
 * that holds any is parsed once more, with those numbers as raw JSON that `JSON.stringify` writes out as it
 * came. Other numbers are doubles, written back in their shortest form (1.0 comes back as 1).
 *
 * The second parse comes after validation, which bounds what it has to visit.
 */
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { DocumentInput } from '../service/contract.ts';
import { inspectJsonValue, parseKeepingLongIntegers } from './json-value.ts';
import { metadataDepthMax } from './limits.ts';
import type { Documents, JsonObject } from './schemas/fields.ts';

export function documentInputs(
  request: FastifyRequest,
  documents: z.output<typeof Documents>,
): DocumentInput[] {
  const exact = documents.some(({ metadata }) => holdsLongInteger(metadata))
    ? (parseKeepingLongIntegers(request.bodyText) as { documents: { metadata?: JsonObject }[] }).documents
    : undefined;
  return documents.map(({ doc_id: docId, text, metadata }, at) => ({
    docId,
    text,
    metadata: exact?.[at]?.metadata ?? metadata,
  }));
}

/** The customer object `given` in one field of the body. */
export function exactObject(request: FastifyRequest, field: string, given: JsonObject): JsonObject {
  if (!holdsLongInteger(given)) return given;
  return (parseKeepingLongIntegers(request.bodyText) as Record<string, JsonObject>)[field] ?? given;
}

function holdsLongInteger(object: JsonObject): boolean {
  return inspectJsonValue(object, metadataDepthMax).holdsLongInteger;
}
