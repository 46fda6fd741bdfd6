import { z } from 'zod';
import { Count, DecimalString, Timestamp } from './fields.ts';

const UsageCounts = z
  .strictObject({
    input_tokens: DecimalString,
    requests: Count,
    document_upserts: Count,
    searches: Count,
    scores: Count,
    documents: Count,
  })
  .meta({ id: 'UsageCounts' });

const TenantLimits = z
  .strictObject({
    input_tokens: DecimalString,
    documents: Count,
    requests_per_minute: Count,
    max_concurrent_requests: Count,
  })
  .meta({ id: 'TenantLimits' });

const Remaining = z.strictObject({ input_tokens: DecimalString, documents: Count }).meta({ id: 'Remaining' });

export const UsageSummary = z
  .strictObject({
    period_start: Timestamp,
    period_end: Timestamp.meta({ description: 'First instant of the next UTC calendar month.' }),
    usage: UsageCounts,
    limits: TenantLimits,
    remaining: Remaining,
  })
  .meta({ id: 'UsageSummary' });
