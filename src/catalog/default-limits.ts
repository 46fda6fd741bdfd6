import type { TenantLimits } from './contract.ts';

/** The limits of a tenant that is created without others: the interface specification, section "Limits". */
export const defaultLimits: TenantLimits = {
  requestsPerMinute: 60,
  maxConcurrentRequests: 2,
  inputTokens: 50_000_000n,
  documents: 100_000,
};
