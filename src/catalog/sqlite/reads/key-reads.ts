/** Reads of keys, sessions and the audit log, on the calling thread. */
import type { ApiKey, AuditEntry, AuditQuery, KeyRecord } from '../../contract.ts';
import {
  auditColumns,
  keyColumns,
  tenantColumns,
  toApiKey,
  toAuditEntry,
  toTenant,
  type AuditColumns,
  type KeyColumns,
  type TenantColumns,
} from '../../rows.ts';
import type { Connection } from '../connection.ts';

export function keyReads(catalog: Connection) {
  const keys = catalog.prepare<[string], KeyColumns>(
    `SELECT ${keyColumns} FROM api_keys WHERE tenant_id = ? ORDER BY created_at_ms, id`,
  );
  const keyRecord = catalog.prepare<[string], TenantColumns & KeyColumns & Pick<KeyRecord, 'hash'>>(
    `SELECT ${keyColumns}, api_keys.hash, ${tenantColumns}
     FROM api_keys JOIN tenants ON tenants.id = api_keys.tenant_id WHERE api_keys.id = ?`,
  );
  const endedSession = catalog
    .prepare<[Uint8Array], number>('SELECT 1 FROM ended_sessions WHERE digest = ?')
    .pluck();
  const audit = catalog.prepare<[number, number], AuditColumns>(
    `SELECT ${auditColumns} FROM audit_log WHERE id < ? ORDER BY id DESC LIMIT ?`,
  );
  const auditOfTenant = catalog.prepare<[string, number, number], AuditColumns>(
    `SELECT ${auditColumns} FROM audit_log WHERE tenant_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
  );

  return {
    listKeys: (tenantId: string): readonly ApiKey[] => keys.all(tenantId).map(toApiKey),

    findKey: (keyId: string): KeyRecord | undefined => {
      const row = keyRecord.get(keyId);
      return row && { key: toApiKey(row), hash: row.hash, tenant: toTenant(row) };
    },

    hasSessionEnded: (digest: Uint8Array): boolean => endedSession.get(digest) !== undefined,

    listAudit: ({ before = Number.MAX_SAFE_INTEGER, limit, tenantId }: AuditQuery): readonly AuditEntry[] => {
      const found =
        tenantId === undefined ? audit.all(before, limit) : auditOfTenant.all(tenantId, before, limit);
      return found.map(toAuditEntry);
    },
  };
}
