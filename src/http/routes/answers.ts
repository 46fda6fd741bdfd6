/** The answers of a route as its schema: its success, and each error status with its codes. */
import type { z } from 'zod';
import { errorTable } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';
import { ErrorBody } from '../schemas/errors.ts';

/** Errors that any `/v1` request may get before its own checks. */
export const admissionErrors = [
  'authentication_failed',
  'tenant_suspended',
  'rate_limit_exceeded',
  'concurrency_limit_exceeded',
  'service_unavailable',
] as const satisfies readonly ErrorCode[];

/** Errors of a request that reads one index. */
export const readErrors = [...admissionErrors, 'not_found', 'validation_error'] as const;
/** Errors of a request that changes an index or its documents. */
export const writeErrors = [...readErrors, 'permission_denied'] as const;
/** Errors of a request that encodes its texts. */
export const scoreErrors = [...admissionErrors, 'validation_error', 'usage_limit_exceeded'] as const;

interface DescribedAnswer {
  readonly description: string;
  readonly content: { readonly 'application/json': { readonly schema: z.ZodType } };
}

export function answers(
  success: Readonly<Record<number, readonly [schema: z.ZodType, description: string]>>,
  errors: readonly ErrorCode[],
): Record<string, unknown> {
  const described: Record<string, DescribedAnswer> = {};
  for (const [status, [schema, description]] of Object.entries(success)) {
    described[status] = answer(schema, description);
  }
  const codesByStatus = Map.groupBy<number, ErrorCode>(
    [...errors, 'internal_error'],
    (code) => errorTable[code].httpStatus,
  );
  for (const [status, codes] of codesByStatus) {
    const lines = codes.map((code) => `\`${code}\`: ${errorTable[code].condition}`);
    described[status] = answer(ErrorBody, lines.join('\n\n'));
  }
  return described;
}

function answer(schema: z.ZodType, description: string): DescribedAnswer {
  return { description, content: { 'application/json': { schema } } };
}
