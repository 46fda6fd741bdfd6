import type { TenantLimits } from './contract.ts';

/** What a tenant may use unless onboarding says otherwise: the interface specification, section "Limits". */
export const defaultLimits: TenantLimits = {
  requestsPerMinute: 60,
  maxConcurrentRequests: 2,
  inputTokens: 50_000_000n,
  documents: 100_000,
};
