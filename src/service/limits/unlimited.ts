/** Allowances that do not limit. The largest number of an allowance stands for none, so every number stays what it is to older programs. */
import type { TenantLimits } from '../../catalog/contract.ts';

/** The largest total of tokens that the catalog can hold, and the largest whole number that JSON keeps in JavaScript. */
export const unlimitedAllowances = {
  inputTokens: 2n ** 63n - 1n,
  documents: Number.MAX_SAFE_INTEGER,
} as const satisfies Partial<TenantLimits>;

export type Allowance = keyof typeof unlimitedAllowances;

export function isUnlimited(limits: TenantLimits, allowance: Allowance): boolean {
  return limits[allowance] === unlimitedAllowances[allowance];
}

/** The allowances that do not limit, by the names of the API. */
export function unlimitedNames(limits: TenantLimits): ('input_tokens' | 'documents')[] {
  return [
    ...(isUnlimited(limits, 'inputTokens') ? (['input_tokens'] as const) : []),
    ...(isUnlimited(limits, 'documents') ? (['documents'] as const) : []),
  ];
}
