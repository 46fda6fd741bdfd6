/** `maxsimd key ...`: API keys of a tenant. A key is shown only once, when it is created. */
import type { ApiKey, KeyChoice, KeyLimits } from '../../catalog/contract.ts';
import { resetKeys } from '../../catalog/sqlite/reset-keys.ts';
import { tooManyKeys, type Administration } from '../../service/administration.ts';
import { assertCatalog, commandLineActor } from './catalog-access.ts';
import type { Confirm } from '../confirm.ts';
import { tenantOf } from './names.ts';
import { CommandFailure } from '../failure.ts';
import { fields, table, timestamp, type CommandResult } from '../output.ts';

export async function createKey(
  administration: Administration,
  word: string,
  choice: KeyChoice,
): Promise<CommandResult> {
  const { id: tenantId } = await tenantOf(administration, word);
  const created = await administration.createKey(tenantId, choice);
  if (created.outcome === 'tenant_missing')
    throw new CommandFailure('not_found', `there is no tenant ${tenantId}`);
  if (created.outcome === 'too_many_keys') throw new CommandFailure('too_many_keys', tooManyKeys);
  const { keyId, apiKey, key } = created;
  return {
    document: { key_id: keyId, api_key: apiKey, ...choiceDocument(key) },
    text: `${fields([
      ['key', keyId],
      ...(key.name === undefined ? [] : [['name', key.name] as const]),
      ['API key', apiKey],
      ['access', key.access],
      ...limitPairs(key),
    ])}\nThe key is shown this once.`,
  };
}

export async function listKeys(administration: Administration, word: string): Promise<CommandResult> {
  const keys = await administration.listKeys((await tenantOf(administration, word)).id);
  return {
    document: { data: keys.map(keyDocument) },
    text: table(
      ['key', 'name', 'access', 'requests/min', 'concurrent', 'created', 'last used', 'revoked'],
      keys.map((key) => [
        key.id,
        key.name ?? '',
        key.access,
        String(key.requestsPerMinute ?? ''),
        String(key.maxConcurrentRequests ?? ''),
        timestamp(key.createdAtMs),
        timestampIf(key.lastUsedAtMs) ?? '',
        timestampIf(key.revokedAtMs) ?? '',
      ]),
      ['requests/min', 'concurrent'],
    ),
  };
}

export async function revokeKey(administration: Administration, keyId: string): Promise<CommandResult> {
  const key = await administration.revokeKey(keyId);
  if (key === undefined) throw new CommandFailure('not_found', `there is no key ${keyId}`);
  return {
    document: keyDocument(key),
    text: `key ${key.id} is revoked; a running server follows within 5 s`,
  };
}

export async function resetAllKeys(directory: string, confirm: Confirm): Promise<CommandResult> {
  await assertCatalog(directory);
  await confirm('Revoke every API key of every tenant?');
  const revoked = await resetKeys(directory, commandLineActor());
  return {
    document: { keys_revoked: revoked },
    text: `the key pepper is new, and ${revoked} API keys are revoked; create new ones with "maxsimd key create"`,
  };
}

function keyDocument(key: ApiKey): object {
  return {
    key_id: key.id,
    tenant_id: key.tenantId,
    ...choiceDocument(key),
    created_at: timestamp(key.createdAtMs),
    revoked_at: timestampIf(key.revokedAtMs) ?? null,
    last_used_at: timestampIf(key.lastUsedAtMs) ?? null,
  };
}

/** Field names of the API. JSON leaves out what is not given. */
export function choiceDocument(choice: KeyChoice): object {
  const { name, access, requestsPerMinute, maxConcurrentRequests } = choice;
  const limits = { requests_per_minute: requestsPerMinute, max_concurrent_requests: maxConcurrentRequests };
  return { name, access, ...limits };
}

function limitPairs({ requestsPerMinute, maxConcurrentRequests }: KeyLimits): (readonly [string, string])[] {
  return [
    ...(requestsPerMinute === undefined ? [] : [['requests per minute', String(requestsPerMinute)] as const]),
    ...(maxConcurrentRequests === undefined
      ? []
      : [['concurrent requests', String(maxConcurrentRequests)] as const]),
  ];
}

function timestampIf(milliseconds: number | undefined): string | undefined {
  return milliseconds === undefined ? undefined : timestamp(milliseconds);
}
