/**
 * The catalog of a data directory, for commands that only read. Reads run on the calling thread. Problems of other files in
 * the directory do not matter.
 */
import path from 'node:path';
import type { Catalog } from '../../contract.ts';
import { catalogFile } from '../catalog-files.ts';
import { isDamage, openReader, operating, toOperatingError, type Connection } from '../connection.ts';
import { readOperations } from './read-operations.ts';
import { smallReads } from './small-reads.ts';

export interface CatalogReader extends Pick<
  Catalog,
  'listTenants' | 'listIndexes' | 'listIndexIds' | 'loadIndexState' | 'resolveVersions'
> {
  close(): void;
}

export function openCatalogReader(directory: string): CatalogReader {
  try {
    const connection = openReader(path.join(directory, catalogFile));
    return {
      ...operating({ ...smallReads(connection), ...readOperations(connection) }),
      close: () => connection.close(),
    };
  } catch (error) {
    throw toOperatingError(error);
  }
}

/** Describes the damage of the catalog's pages and tables. Empty when there is none. Reads the whole file. */
export function catalogDamage(directory: string): readonly string[] {
  const connection = openReader(path.join(directory, catalogFile));
  try {
    const damage = damageIn(connection);
    if (damage.length === 0) return [];
    const tables = connection
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .pluck()
      .all();
    const damaged = tables.filter((table) => damageIn(connection, table).length > 0);
    // Damage outside of all tables lies on pages that hold nothing now.
    return damaged.length === 0 ? damage : damaged.map((table) => `its table ${table} is damaged`);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [`is damaged (${(error as Error).message})`];
  } finally {
    connection.close();
  }
}

function damageIn(connection: Connection, table?: string): readonly string[] {
  try {
    const rows = connection.pragma(`integrity_check${table === undefined ? '' : `(${table})`}`) as {
      readonly integrity_check: string;
    }[];
    return rows.map((row) => row.integrity_check).filter((found) => found !== 'ok');
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [`has damaged pages (${(error as Error).message})`];
  }
}
