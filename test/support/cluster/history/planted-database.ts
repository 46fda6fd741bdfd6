/** Planted faults of the database. The battery must find them, or it would prove nothing. */
import { queryDatabase } from '../servers.ts';

/** Merged segments are swapped in although another node has the lease, and although their sources are gone. */
export async function withoutFence(url: string): Promise<void> {
  const [row] = await queryDatabase(
    url,
    `SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname = 'swap_merged_1'`,
  );
  const original = String(row?.['text']);
  const open = original
    .replace('AND lease_fence = _fence', '')
    .replace('_count <> array_length(_removed, 1)', 'false');
  if (open.length > original.length - 40) throw new Error('the swap does not look as it did');
  await queryDatabase(url, open);
}

/** The catalog keeps its epoch although it has lost commits. */
export async function withoutEpochs(url: string): Promise<void> {
  await queryDatabase(
    url,
    `CREATE OR REPLACE FUNCTION epoch_1() RETURNS text LANGUAGE sql AS $$ SELECT 'always' $$`,
  );
}

/** Commits are answered long before they are durable. */
export async function withoutDurability(url: string): Promise<void> {
  const database = new URL(url).pathname.slice(1);
  await queryDatabase(url, `ALTER DATABASE ${database} SET synchronous_commit = off`);
  await queryDatabase(url, `ALTER SYSTEM SET wal_writer_delay = '10s'`);
  await queryDatabase(url, 'SELECT pg_reload_conf()');
}
