/** `maxsimd key ...`: API keys of a tenant, straight in the catalog. A key is shown once, when it is made. */
import type { ApiKey, Catalog } from '../../catalog/contract.ts';
import { resetKeys } from '../../catalog/sqlite/reset-keys.ts';
import { assertCatalog } from './catalog-access.ts';
import { tenantOf } from './names.ts';
import { CommandFailure } from '../failure.ts';
import { fields, table, timestamp, type CommandResult } from '../output.ts';

/** A fresh key: the secret text for its owner, and what the catalog keeps of it. */
export interface NewApiKey {
  readonly id: string;
  readonly apiKey: string;
  readonly hash: Uint8Array;
}

export async function createKey(
  catalog: Catalog,
  word: string,
  newApiKey: () => NewApiKey,
): Promise<CommandResult> {
  const { id: tenantId } = await tenantOf(catalog, word);
  const { id, apiKey, hash } = newApiKey();
  const result = await catalog.createKey({ id, tenantId, hash });
  if (result.outcome === 'tenant_missing') {
    throw new CommandFailure('not_found', `there is no tenant ${tenantId}`);
  }
  if (result.outcome === 'too_many_keys') {
    throw new CommandFailure('too_many_keys', 'the tenant has two live keys already: revoke one first');
  }
  return {
    document: { key_id: id, api_key: apiKey },
    text: `${fields([
      ['key', id],
      ['API key', apiKey],
    ])}\nThe key is shown this once.`,
  };
}

export async function listKeys(catalog: Catalog, word: string): Promise<CommandResult> {
  const keys = await catalog.listKeys((await tenantOf(catalog, word)).id);
  return {
    document: { data: keys.map(keyDocument) },
    text: table(
      ['key', 'created', 'revoked'],
      keys.map((key) => [key.id, timestamp(key.createdAtMs), revokedAt(key) ?? '']),
    ),
  };
}

export async function revokeKey(catalog: Catalog, keyId: string): Promise<CommandResult> {
  const key = await catalog.revokeKey(keyId);
  if (key === undefined) throw new CommandFailure('not_found', `there is no key ${keyId}`);
  return {
    document: keyDocument(key),
    text: `key ${key.id} is revoked; a running server follows within 5 s`,
  };
}

export interface ResetKeys {
  readonly directory: string;
  /** Asks the person; `true` = go on. */
  readonly confirm: (question: string) => Promise<boolean>;
}

export async function resetAllKeys({ directory, confirm }: ResetKeys): Promise<CommandResult> {
  await assertCatalog(directory);
  if (!(await confirm('Make every API key of every tenant void? [y/N] '))) {
    throw new CommandFailure('not_confirmed', 'nothing was changed');
  }
  const revoked = await resetKeys(directory);
  return {
    document: { keys_revoked: revoked },
    text: `there is a new key pepper, and ${revoked} API keys are revoked; make new ones with "maxsimd key create"`,
  };
}

function keyDocument(key: ApiKey): object {
  return {
    key_id: key.id,
    tenant_id: key.tenantId,
    created_at: timestamp(key.createdAtMs),
    revoked_at: revokedAt(key) ?? null,
  };
}

function revokedAt(key: ApiKey): string | undefined {
  return key.revokedAtMs === undefined ? undefined : timestamp(key.revokedAtMs);
}
