/** The error body of every unsuccessful answer, and the statuses of the protocol. */
import { z } from 'zod';
import { errorTable } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';

const errorCodes = Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]];

const Issue = z
  .strictObject({
    path: z.string().meta({
      description: 'Names joined by dots. Positions in arrays are numbers.',
      example: 'documents.3.text',
    }),
    message: z.string(),
    code: z.string().meta({ example: 'too_big' }),
  })
  .meta({ id: 'Issue' });

const ErrorDetail = z
  .strictObject({
    code: z.enum(errorCodes).meta({ description: 'Decide by this value.', example: 'validation_error' }),
    message: z.string().meta({ description: 'For people. Do not parse it.' }),
    issues: z.array(Issue).optional().meta({ description: 'The fields that are invalid, and why.' }),
  })
  .meta({ id: 'ErrorDetail' });

export const ErrorBody = z.strictObject({ error: ErrorDetail }).meta({ id: 'Error' });

/** Statuses of the protocol itself. Their answers have the error body, with code `validation_error`. */
export const protocolStatuses = {
  400: 'The HTTP request is malformed.',
  408: 'The request did not arrive in time.',
  413: 'The body is too large.',
  414: 'The path is too long.',
  415: 'The body is not `application/json` in UTF-8, or has a compression other than gzip.',
  417: 'The `Expect` header is not `100-continue`.',
  431: 'The header is too large.',
} as const;
