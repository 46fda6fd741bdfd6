/** The error body of every non-success response, and which statuses carry which codes. */
import { z } from 'zod';
import { errorTable } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';

const errorCodes = Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]];

const Issue = z
  .strictObject({
    path: z
      .string()
      .meta({ description: 'Dotted, array positions as numbers.', example: 'documents.3.text' }),
    message: z.string(),
    code: z.string().meta({ example: 'too_big' }),
  })
  .meta({ id: 'Issue' });

const ErrorDetail = z
  .strictObject({
    code: z
      .enum(errorCodes)
      .meta({ description: 'Decide behaviour from this.', example: 'validation_error' }),
    message: z.string().meta({ description: 'Diagnostic only.' }),
    issues: z.array(Issue).optional().meta({ description: 'Field-level validation details.' }),
  })
  .meta({ id: 'ErrorDetail' });

export const ErrorBody = z.strictObject({ error: ErrorDetail }).meta({ id: 'Error' });

/** Statuses of the protocol itself: they keep the error body, with code `validation_error`. */
export const protocolStatuses = {
  400: 'Malformed HTTP.',
  408: 'The request did not arrive in time.',
  413: 'The body is too large.',
  414: 'The path is too long.',
  415: 'The body is not `application/json` in UTF-8, or is compressed in another way than by gzip.',
  417: 'An `Expect` header other than `100-continue`.',
  431: 'The header is too large.',
} as const;
