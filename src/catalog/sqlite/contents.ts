/** Reads and writes the contents of a catalog (`../contents.ts`) in a data directory. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import {
  columnsOf,
  selectFrom,
  tableNames,
  type CatalogContents,
  type ContentSegment,
  type Row,
  type TableName,
} from '../contents.ts';
import { catalogFile } from './catalog-files.ts';
import { checkpoint, openReader, openWriter, toOperatingError, type Connection } from './connection.ts';
import { catalogMigrations, migrate, usageMigrations, type Migrations } from './schema.ts';
import { usageFile } from './usage/usage-store.ts';

/** Rows of a batch: a thousand documents with their metadata. */
const batchRows = 1_000;

export interface StoredContents extends CatalogContents {
  readonly segments: readonly ContentSegment[];
  close(): void;
}

/** Reads the catalog of a data directory that no process uses. Migrates it first if an earlier release made it. */
export async function readContents(directory: string): Promise<StoredContents> {
  await upgrade(path.join(directory, catalogFile), catalogMigrations);
  const hasUsage = existsSync(path.join(directory, usageFile));
  if (hasUsage) await upgrade(path.join(directory, usageFile), usageMigrations);
  const connection = openReader(path.join(directory, catalogFile));
  if (hasUsage) connection.prepare('ATTACH ? AS ledger').run(path.join(directory, usageFile));
  const { fingerprint, nextId } = connection
    .prepare<[], { fingerprint: Uint8Array; nextId: number }>(
      'SELECT key_pepper AS fingerprint, next_id AS nextId FROM catalog',
    )
    .get()!;
  return {
    pepperFingerprint: fingerprint,
    nextId,
    segments: connection
      .prepare<[], ContentSegment>(
        `SELECT s.id AS id, s.index_key AS indexKey, i.id AS indexId, s.blob AS blob, s.state AS state,
            max(v.record) + 1 AS recordsReferenced
          FROM segments s JOIN indexes i ON i.index_key = s.index_key
            JOIN versions v INDEXED BY versions_placed ON v.index_key = s.index_key AND v.segment_id = s.id AND v.died = 0
          GROUP BY s.id ORDER BY s.id`,
      )
      .all(),
    rows: (table) => rowsOf(connection, table, hasUsage),
    close: () => connection.close(),
  };
}

async function upgrade(file: string, migrations: Migrations): Promise<void> {
  const connection = await openWriter({
    path: file,
    durability: 'process_death',
    busyTimeoutMs: 0,
    mustExist: true,
  });
  try {
    migrate(connection, migrations);
  } finally {
    connection.close();
  }
}

async function* rowsOf(
  connection: Connection,
  table: TableName,
  hasUsage: boolean,
): AsyncGenerator<readonly Row[]> {
  const columns = columnsOf(table).map(([name]) => name);
  const text =
    table === 'usage_months' || table === 'usage_days'
      ? usageSql(table, hasUsage)
      : `SELECT ${columns.join(', ')} FROM ${table} ${selectFrom(table)}`;
  let batch: Row[] = [];
  for (const row of connection.prepare<[], Row>(text).safeIntegers().raw().iterate()) {
    batch.push(row);
    if (batch.length < batchRows) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Adds up the usage of both databases. */
function usageSql(table: 'usage_months' | 'usage_days', hasUsage: boolean): string {
  const names = columnsOf(table).map(([name]) => name);
  const [tenant, period, ...counters] = names;
  const ledger = hasUsage ? `UNION ALL SELECT ${names.join(', ')} FROM ledger.${table}` : '';
  const sums = counters.map((name) => `sum(${name})`);
  return `SELECT ${tenant}, ${period}, ${sums.join(', ')}
    FROM (SELECT ${names.join(', ')} FROM main.${table} ${ledger})
    WHERE tenant_id IN (SELECT id FROM tenants) GROUP BY ${tenant}, ${period}`;
}

/** Creates a database with the contents. It is complete when the promise resolves, but not synced. */
export async function writeContents(
  file: string,
  contents: CatalogContents & { readonly catalogId: string; readonly segments: readonly ContentSegment[] },
): Promise<void> {
  try {
    const connection = await openWriter({ path: file, durability: 'process_death', busyTimeoutMs: 0 });
    try {
      connection.exec('BEGIN');
      migrate(connection, catalogMigrations);
      connection
        .prepare('INSERT INTO catalog (singleton, id, key_pepper, next_id) VALUES (1, ?, ?, ?)')
        .run(contents.catalogId, contents.pepperFingerprint, contents.nextId);
      for (const table of tableNames) await insertAll(connection, table, contents);
      const segment = connection.prepare(
        `INSERT INTO segments (id, index_key, blob, state, records_sealed) VALUES (?, ?, ?, 'sealed', ?)`,
      );
      for (const { id, indexKey, blob, recordsReferenced } of contents.segments) {
        segment.run(id, indexKey, blob, recordsReferenced);
      }
      connection.exec('COMMIT');
      checkpoint(connection, 'TRUNCATE');
    } finally {
      connection.close();
    }
  } catch (error) {
    throw toOperatingError(error);
  }
}

async function insertAll(connection: Connection, table: TableName, contents: CatalogContents): Promise<void> {
  const columns = columnsOf(table).map(([name]) => name);
  const insert = connection.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  );
  if (table === 'usage_days') connection.exec('DELETE FROM usage_days');
  for await (const rows of contents.rows(table)) for (const row of rows) insert.run(...row);
}
