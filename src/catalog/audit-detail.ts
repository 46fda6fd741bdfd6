/** Details of entries in the audit log, the same in both catalogs. */
import type { ApiKey, IndexRow, TenantLimits } from './contract.ts';

export function limitsDetail(limits: Partial<TenantLimits>): Readonly<Record<string, unknown>> {
  return {
    requests_per_minute: limits.requestsPerMinute,
    max_concurrent_requests: limits.maxConcurrentRequests,
    input_tokens: limits.inputTokens === undefined ? undefined : String(limits.inputTokens),
    documents: limits.documents,
  };
}

/** Names of fields are the customer's words, so the log has their number. */
export function matchFieldsDetail({
  id,
  matchFields,
}: Pick<IndexRow, 'id' | 'matchFields'>): Readonly<Record<string, unknown>> {
  return { index_id: id, match_fields: matchFields.length };
}

export function keyDetail(key: ApiKey): Readonly<Record<string, unknown>> {
  return {
    key_id: key.id,
    access: key.access,
    requests_per_minute: key.requestsPerMinute,
    max_concurrent_requests: key.maxConcurrentRequests,
  };
}
