/** Makes tenants with a key for the history battery. */
import { randomUUID } from 'node:crypto';
import { generateApiKey, hashApiKey } from '../../../../src/catalog/api-key.ts';
import type { Catalog, TenantLimits } from '../../../../src/catalog/contract.ts';
import { generousLimits } from '../../stages/catalog-fixture.ts';

export interface KeyedTenant {
  readonly tenantId: string;
  readonly apiKey: string;
  readonly limits: TenantLimits;
}

export interface BatteryTenant extends KeyedTenant {
  readonly indexId: string;
}

/** Limits that are never reached, except for those that are given. */
export async function newKeyedTenant(
  catalog: Pick<Catalog, 'createTenant'>,
  keyPepper: Uint8Array,
  limits: Partial<TenantLimits>,
): Promise<KeyedTenant> {
  const { id: keyId, apiKey } = generateApiKey();
  const tenant = await catalog.createTenant({
    id: randomUUID(),
    name: `tenant ${randomUUID()}`,
    limits: { ...generousLimits, requestsPerMinute: 120_000, maxConcurrentRequests: 300, ...limits },
    key: { id: keyId, hash: hashApiKey(apiKey, keyPepper) },
  });
  return { tenantId: tenant.id, apiKey, limits: tenant.limits };
}
