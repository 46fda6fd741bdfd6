/**
 * Administration of tenants and keys, for the admin API and the command line. A running service follows within the age of its
 * caches.
 */
import { randomUUID } from 'node:crypto';
import { generateApiKey, hashApiKey } from '../catalog/api-key.ts';
import {
  liveKeysMax,
  type ApiKey,
  type Catalog,
  type KeyChoice,
  type Tenant,
  type TenantLimits,
} from '../catalog/contract.ts';
import { defaultLimits } from '../catalog/default-limits.ts';

/** A key that was just made. Its text is known now and never again. */
export interface MadeKey {
  readonly keyId: string;
  readonly apiKey: string;
}

export type KeyCreation =
  | (MadeKey & { readonly outcome: 'created'; readonly key: ApiKey })
  | { readonly outcome: 'tenant_missing' }
  | { readonly outcome: 'too_many_keys' };

export { keyNameLengthMax, liveKeysMax } from '../catalog/contract.ts';
/** For people: why a key was not made. */
export const tooManyKeys = `the tenant already has ${liveKeysMax} live keys, which is the most: revoke one first`;

export interface TenantDeletion {
  readonly indexes: number;
  /** False: a running service removes the files of these indexes within a minute. */
  readonly filesRemoved: boolean;
}

/** A function returns `undefined` when there is no such tenant or key. */
export interface Administration extends Pick<
  Catalog,
  | 'listTenants'
  | 'getTenant'
  | 'setTenantSuspended'
  | 'setTenantLimits'
  | 'listKeys'
  | 'revokeKey'
  | 'usageDays'
  | 'listAudit'
> {
  createTenant(name: string, limits: Partial<TenantLimits>): Promise<MadeKey & { readonly tenant: Tenant }>;
  /** Erases the tenant with its keys, indexes, documents and usage. */
  deleteTenant(tenantId: string): Promise<TenantDeletion | undefined>;
  createKey(tenantId: string, choice?: KeyChoice): Promise<KeyCreation>;
}

/** Administration beside the catalog, which also has the usage of this month. */
export interface LocalAdministration extends Administration, Pick<Catalog, 'usageTotals'> {}

export interface AdministrationDeps {
  readonly catalog: Catalog;
  /** The name in the audit log; absent = that of the process that opened the catalog. */
  readonly actor?: string;
  /** API keys are hashed with it; 32 bytes. */
  readonly keyPepper: Uint8Array;
  /** Removes the files of deleted indexes. Resolves to false when a running service shall do that. */
  readonly purge: (indexIds: readonly string[]) => Promise<boolean>;
}

export function administration({
  catalog,
  actor,
  keyPepper,
  purge,
}: AdministrationDeps): LocalAdministration {
  const acts = actor === undefined ? catalog : catalog.actingAs(actor);
  const makeKey = (): MadeKey & { readonly hash: Uint8Array } => {
    const { id, apiKey } = generateApiKey();
    return { keyId: id, apiKey, hash: hashApiKey(apiKey, keyPepper) };
  };
  return {
    listTenants: (page) => catalog.listTenants(page),
    getTenant: (tenantId) => catalog.getTenant(tenantId),
    setTenantSuspended: (tenantId, suspended) => acts.setTenantSuspended(tenantId, suspended),
    setTenantLimits: (tenantId, limits) => acts.setTenantLimits(tenantId, limits),
    listKeys: (tenantId) => catalog.listKeys(tenantId),
    revokeKey: (keyId) => acts.revokeKey(keyId),
    usageDays: (tenantId, from, to) => catalog.usageDays(tenantId, from, to),
    usageTotals: (tenantId, month) => catalog.usageTotals(tenantId, month),
    listAudit: (query) => catalog.listAudit(query),

    async createTenant(name, limits) {
      const { keyId, apiKey, hash } = makeKey();
      const tenant = await acts.createTenant({
        id: randomUUID(),
        name,
        limits: { ...defaultLimits, ...limits },
        key: { id: keyId, hash },
      });
      return { tenant, keyId, apiKey };
    },

    async deleteTenant(tenantId) {
      const deleted = await acts.deleteTenant(tenantId);
      if (deleted === undefined) return undefined;
      return { indexes: deleted.indexIds.length, filesRemoved: await purge(deleted.indexIds) };
    },

    async createKey(tenantId, choice) {
      const { keyId, apiKey, hash } = makeKey();
      const created = await acts.createKey({ ...choice, id: keyId, tenantId, hash });
      return created.outcome === 'created' ? { ...created, keyId, apiKey } : created;
    },
  };
}
