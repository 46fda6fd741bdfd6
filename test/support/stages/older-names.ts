/** Gives tenants names that older releases accepted and this one refuses. Data directories may have them. */
import path from 'node:path';
import { openWriter } from '../../../src/catalog/sqlite/connection.ts';

export async function nameTenant(directory: string, tenantId: string, name: string): Promise<void> {
  const file = path.join(directory, 'catalog.db');
  const writer = await openWriter({ path: file, durability: 'process_death', busyTimeoutMs: 5_000 });
  try {
    writer.prepare('UPDATE tenants SET name = ? WHERE id = ?').run(name, tenantId);
  } finally {
    writer.close();
  }
}
