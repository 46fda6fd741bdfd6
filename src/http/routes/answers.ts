/** The answers of a route as its schema: what it gives on success, and every error with its codes. */
import type { z } from 'zod';
import { errorTable } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';
import { ErrorBody } from '../schemas/errors.ts';

/** Marks in the document what the interface specification does not have. */
export const addition = { 'x-maxsimd-addition': true } as const;

/** What any `/v1` request may meet before its own checks. */
export const admissionErrors = [
  'authentication_failed',
  'tenant_suspended',
  'rate_limit_exceeded',
  'concurrency_limit_exceeded',
  'service_unavailable',
] as const satisfies readonly ErrorCode[];

/** And any that changes something. */
export const changeErrors = [...admissionErrors, 'permission_denied'] as const;

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
