/** `maxsimd audit`: what was done to tenants and keys. */
import type { Administration } from '../../service/administration.ts';
import { table, timestamp, type CommandResult } from '../output.ts';
import { tenantOf } from './names.ts';

export interface AuditChoice {
  /** Number of entries, from the newest on. */
  readonly limit: number;
  /** Shows only acts on this tenant: identifier or name. An erased tenant has no name any more. */
  readonly tenant?: string | undefined;
}

export async function showAudit(
  administration: Administration,
  { limit, tenant }: AuditChoice,
): Promise<CommandResult> {
  const tenantId = tenant === undefined ? undefined : await identifierOf(administration, tenant);
  const entries = await administration.listAudit({ limit, tenantId });
  return {
    document: {
      data: entries.map((entry) => ({
        id: entry.id,
        at: timestamp(entry.atMs),
        actor: entry.actor,
        act: entry.act,
        tenant_id: entry.tenantId ?? null,
        tenant_name: entry.tenantName ?? null,
        detail: entry.detail,
      })),
    },
    text: table(
      ['at', 'who', 'what', 'tenant', ''],
      entries.map((entry) => [
        timestamp(entry.atMs),
        entry.actor,
        entry.act,
        entry.tenantName ?? entry.tenantId ?? '',
        Object.keys(entry.detail).length === 0 ? '' : JSON.stringify(entry.detail),
      ]),
    ),
  };
}

const identifier = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

async function identifierOf(administration: Administration, word: string): Promise<string> {
  return identifier.test(word) ? word.toLowerCase() : (await tenantOf(administration, word)).id;
}
