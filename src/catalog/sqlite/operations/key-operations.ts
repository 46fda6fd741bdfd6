/** Writes on keys and sessions. */
import { keyDetail } from '../../audit-detail.ts';
import { assertKeyName } from '../../checks.ts';
import {
  endedSessionKeptMs,
  keyUseIntervalMs,
  liveKeysMax,
  type ApiKey,
  type CreateKeyResult,
  type EndedSession,
  type NewKey,
} from '../../contract.ts';
import { keyColumns, toApiKey, type KeyColumns } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { auditLog } from './audit-log.ts';

export function keyOperations(connection: Connection) {
  const note = auditLog(connection);
  const addKey = keyWriter(connection);
  const tenantExists = connection.prepare<[string], number>('SELECT 1 FROM tenants WHERE id = ?').pluck();
  const selectKey = connection.prepare<[string], KeyColumns>(
    `SELECT ${keyColumns} FROM api_keys WHERE id = ?`,
  );
  const countLiveKeys = connection
    .prepare<[string], number>('SELECT count(*) FROM api_keys WHERE tenant_id = ? AND revoked_at_ms IS NULL')
    .pluck();
  const revoke = connection.prepare(
    'UPDATE api_keys SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL',
  );
  const noteUse = connection.prepare(
    'UPDATE api_keys SET last_used_at_ms = ? WHERE id = ? AND coalesce(last_used_at_ms <= ?, true)',
  );
  const insertEndedSession = connection.prepare(
    `INSERT INTO ended_sessions (digest, key_id, expires_at_ms) SELECT ?, id, ? FROM api_keys WHERE id = ?
     ON CONFLICT DO NOTHING`,
  );
  const deleteExpiredSessions = connection.prepare('DELETE FROM ended_sessions WHERE expires_at_ms < ?');

  return {
    createKey(actor: string, added: NewKey): CreateKeyResult {
      assertKeyName(added.name);
      if (tenantExists.get(added.tenantId) === undefined) return { outcome: 'tenant_missing' };
      if ((countLiveKeys.get(added.tenantId) ?? 0) >= liveKeysMax) return { outcome: 'too_many_keys' };
      const key = addKey(added);
      note(actor, 'key_created', key.tenantId, keyDetail(key));
      return { outcome: 'created', key };
    },

    revokeKey(actor: string, keyId: string): ApiKey | undefined {
      const isRevoked = revoke.run(Date.now(), keyId).changes === 1;
      const row = selectKey.get(keyId);
      const key = row && toApiKey(row);
      if (isRevoked && key !== undefined) note(actor, 'key_revoked', key.tenantId, keyDetail(key));
      return key;
    },

    noteKeyUse(keyId: string, atMs: number): void {
      noteUse.run(atMs, keyId, atMs - keyUseIntervalMs);
    },

    endSession({ digest, keyId, expiresAtMs }: EndedSession): void {
      deleteExpiredSessions.run(Date.now() - endedSessionKeptMs);
      insertEndedSession.run(digest, expiresAtMs, keyId);
    },
  };
}

/** Returns the function that stores a new key. */
export function keyWriter(connection: Connection): (key: NewKey) => ApiKey {
  const insert = connection.prepare(
    `INSERT INTO api_keys (id, tenant_id, name, hash, access, created_at_ms, requests_per_minute,
       max_concurrent_requests) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return ({ id, tenantId, name, hash, access = 'full', requestsPerMinute, maxConcurrentRequests }) => {
    const createdAtMs = Date.now();
    const limits = { requestsPerMinute, maxConcurrentRequests };
    insert.run(
      id,
      tenantId,
      name ?? null,
      hash,
      access,
      createdAtMs,
      requestsPerMinute ?? null,
      maxConcurrentRequests ?? null,
    );
    const unused = { revokedAtMs: undefined, lastUsedAtMs: undefined };
    return { id, tenantId, name, access, ...limits, createdAtMs, ...unused };
  };
}
