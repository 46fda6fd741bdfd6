/**
 * The catalog of a data directory for commands that only look: read only, on the calling thread, and whatever else
 * in the directory is amiss.
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
    const { listTenants, listIndexes, listIndexIds } = smallReads(connection);
    const documents = readOperations(connection);
    return {
      listTenants: operating(listTenants),
      listIndexes: operating(listIndexes),
      listIndexIds: operating(listIndexIds),
      loadIndexState: operating((indexId) => documents.loadIndexState({ indexId })),
      resolveVersions: operating((indexId, versionIds) => {
        const found = documents.resolveVersions({ indexId, versionIds });
        return new Map(found.map((version) => [version.versionId, version]));
      }),
      close: () => connection.close(),
    };
  } catch (error) {
    throw toOperatingError(error);
  }
}

/** What is wrong with the pages of the catalog, and between them; reads all of it. */
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
    // Damage beside all tables lies where nothing is stored now.
    return damaged.length === 0 ? damage : damaged.map((table) => `what it holds of ${table} is damaged`);
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
