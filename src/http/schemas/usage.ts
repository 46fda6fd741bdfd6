import { z } from 'zod';
import { Count, DecimalString, Timestamp } from './fields.ts';

export const UsageSummary = z
  .strictObject({
    period_start: Timestamp,
    period_end: Timestamp.meta({ description: 'First instant of the next UTC calendar month.' }),
    usage: z.strictObject({
      input_tokens: DecimalString,
      requests: Count,
      document_upserts: Count,
      searches: Count,
      scores: Count,
      documents: Count,
    }),
    limits: z.strictObject({
      input_tokens: DecimalString,
      documents: Count,
      requests_per_minute: Count,
      max_concurrent_requests: Count,
    }),
    remaining: z.strictObject({ input_tokens: DecimalString, documents: Count }),
  })
  .meta({ id: 'UsageSummary' });
