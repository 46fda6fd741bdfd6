import { z } from 'zod';
import { invalid } from '../../errors.ts';
import { addition } from './addition.ts';
import { Count, DecimalString, Timestamp } from './fields.ts';

const counted = {
  input_tokens: DecimalString,
  requests: Count,
  document_upserts: Count,
  searches: Count,
  scores: Count,
};

export const UsageCounts = z.strictObject({ ...counted, documents: Count }).meta({ id: 'UsageCounts' });

export const TenantLimits = z
  .strictObject({
    input_tokens: DecimalString,
    documents: Count,
    requests_per_minute: Count,
    max_concurrent_requests: Count,
  })
  .meta({ id: 'TenantLimits' });

const Remaining = z.strictObject({ input_tokens: DecimalString, documents: Count }).meta({ id: 'Remaining' });

export const Unlimited = z.array(z.enum(['input_tokens', 'documents'])).meta({
  description:
    'Allowances that do not limit. Their numbers in `limits` are 2^63 - 1 tokens and 2^53 - 1 documents, and `remaining` is the same less the usage. Absent from services of an earlier release.',
});

export const UsageSummary = z
  .strictObject({
    period_start: Timestamp,
    period_end: Timestamp.meta({ description: 'The first instant of the next month.' }),
    usage: UsageCounts,
    limits: TenantLimits,
    remaining: Remaining,
    unlimited: Unlimited.optional().meta(addition),
    tenant: z.string().meta({ ...addition, description: 'Name of the tenant, as operators know it.' }),
  })
  .meta({ id: 'UsageSummary' });

/** Usage by day is kept for so long. */
const usageDaysMax = 400;
const dayMs = 86_400_000;

const Day = z.iso.date().meta({ description: 'A day in UTC.', example: '2026-11-23' });

export const UsageDaysQuery = z.strictObject({
  from: Day.optional().meta({ description: 'The first day. Default: the first of this month.' }),
  to: Day.optional().meta({ description: 'The last day. Default: today.' }),
});

export interface DayRange {
  readonly from: string;
  readonly to: string;
}

export function dayRange({ from, to }: z.output<typeof UsageDaysQuery>, nowMs: number): DayRange {
  const today = new Date(nowMs).toISOString().slice(0, 10);
  const range = { from: from ?? `${today.slice(0, 7)}-01`, to: to ?? today };
  const days = (Date.parse(range.to) - Date.parse(range.from)) / dayMs + 1;
  if (days < 1) throw invalid('to', 'must not be before from', 'too_small');
  if (days > usageDaysMax) throw invalid('from', `must be at most ${usageDaysMax} days before to`, 'too_big');
  return range;
}

const UsageOfDay = z.strictObject({ day: Day, ...counted }).meta({ id: 'UsageOfDay' });

export const UsageDays = z
  .strictObject({ data: z.array(UsageOfDay).meta({ description: 'Days without usage are left out.' }) })
  .meta({ id: 'UsageDays' });
