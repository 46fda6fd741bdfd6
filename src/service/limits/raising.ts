/** Command lines by which an operator raises a limit of a tenant, for messages that refuse because of it. */
import type { Tenant } from '../../catalog/contract.ts';
import { defaultLimits } from '../../catalog/default-limits.ts';
import { unlimitedAllowances, type Allowance } from './unlimited.ts';

const options = { inputTokens: 'input-tokens', documents: 'documents' } as const;

/** For a POSIX shell. */
export function limitCommand(tenantName: string, option: string, value: number | bigint): string {
  const quoted = `'${tenantName.replaceAll("'", String.raw`'\''`)}'`;
  return `npx maxsimd tenant limits ${quoted} --${option} ${value}`;
}

/** Sets ten times the allowance, at least the default. */
export function raisingCommand({ name, limits }: Tenant, allowance: Allowance): string {
  const tenfold = 10n * BigInt(limits[allowance]);
  const least = BigInt(defaultLimits[allowance]);
  const most = BigInt(unlimitedAllowances[allowance]);
  const raised = tenfold < least ? least : tenfold;
  return limitCommand(name, options[allowance], raised < most ? raised : most);
}
