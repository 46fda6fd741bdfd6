/**
 * The catalog of several nodes, in PostgreSQL. Every write is durable when it settles, unless the server runs with
 * `synchronous_commit` off. All reads are of the primary.
 */
import { randomUUID } from 'node:crypto';
import { explained } from '../../away-reasons.ts';
import type { CallObserver } from '../../observation/call-observer.ts';
import type { ClusterCatalog } from '../cluster-contract.ts';
import { unnamedActor, type Catalog } from '../contract.ts';
import { ServiceError } from '../../errors.ts';
import { fingerprintOf } from '../key-pepper.ts';
import { auditCatalog } from './audit-log.ts';
import { commitCatalog } from './commits.ts';
import { openDatabase, type Database, type Queries, statements } from './database.ts';
import { Epochs } from './reads/epochs.ts';
import { indexCatalog } from './indexes.ts';
import { keyCatalog } from './keys.ts';
import { nodeCatalog } from './nodes.ts';
import { purgeAlways } from './purge.ts';
import { documentCatalog } from './reads/documents.ts';
import { catalogMigrations, migrate, type Migration } from './schema.ts';
import { segmentCatalog } from './segments.ts';
import { sweepCatalog } from './sweeps.ts';
import { tenantCatalog } from './tenants.ts';
import { usageCatalog } from './usage.ts';

export interface PostgresCatalogOptions {
  /** `postgres://user:password@host:port/database`, with TLS by its parameters. */
  readonly url: string;
  /** The secret that API keys are hashed with: the same on every node, 32 bytes. */
  readonly keyPepper: Uint8Array;
  /** Also opens a catalog of another pepper: for a restore, which sets the pepper of an empty catalog. */
  readonly takesAnyPepper?: boolean;
  /** Receives failures of purges and of idle connections, which are made up for later. For the log. */
  readonly onBackgroundFailure?: (error: Error) => void;
  /** The migrations that a program of another version knows: for tests. */
  readonly migrations?: readonly Migration[];
  /** Observes each statement, by name. */
  readonly onCall?: CallObserver;
  /** The actor of this process's entries in the audit log. */
  readonly actor?: string;
}

const sql = statements({
  readPepper: 'SELECT key_pepper FROM catalog',
  session: 'SELECT pg_backend_pid() AS session',
  ping: 'UPDATE catalog SET pinged_at = now()',
  nameCatalog:
    'INSERT INTO catalog (singleton, id, key_pepper) VALUES (1, $1, $2) ON CONFLICT (singleton) DO NOTHING',
  allocateIds: `SELECT nextval('ids') AS id FROM epoch_1(), generate_series(1, $1::integer)`,
});

/** Creates or migrates the tables. Refuses a pepper that is not the catalog's, unless any is taken. */
export async function openPostgresCatalog(options: PostgresCatalogOptions): Promise<ClusterCatalog> {
  const { url, onCall, migrations = catalogMigrations, actor = unnamedActor } = options;
  const { onBackgroundFailure = () => undefined, takesAnyPepper = false } = options;
  const pool = (use: 'serving' | 'scans' | 'openings'): Database =>
    openDatabase({ url, use, onIdleError: onBackgroundFailure, onCall });
  const [database, scans, openings] = [pool('serving'), pool('scans'), pool('openings')];
  const closeAll = async (): Promise<void> =>
    void (await Promise.all([database, scans, openings].map((one) => one.close())));
  try {
    await migrateTables(url, migrations);
    await assertOwnSessions(database, scans);
    const isOwn = await adoptPepper(database, scans, fingerprintOf(options.keyPepper));
    if (!isOwn && !takesAnyPepper) throw otherPepper();
  } catch (error) {
    await closeAll();
    throw explained(error);
  }
  const epochs = new Epochs();
  const ended = new AbortController();
  const purging = purgeAlways(database, ended.signal, onBackgroundFailure);
  const actsBy = (by: string) => ({
    ...tenantCatalog(database, scans, by),
    ...keyCatalog(database, by),
  });
  let closed: Promise<void> | undefined;
  return {
    ...actsBy(actor),
    actingAs: actsBy,
    ...auditCatalog(scans),
    ...indexCatalog(database, scans, actor),
    ...commitCatalog(database),
    ...documentCatalog(database, scans),
    ...segmentCatalog(database, openings, epochs),
    ...sweepCatalog(database),
    ...nodeCatalog(database, epochs, migrations.length),
    ...usageCatalog(database, scans),
    watchEpoch: (onOther) => epochs.watch(onOther),
    allocateIds: idAllocator(database),
    async ping() {
      await database.rows(sql.ping);
    },
    close() {
      ended.abort();
      return (closed ??= purging.then(closeAll));
    },
  };
}

/** On a connection of its own: a migration, and the wait for another node's, may take longer than statements that serve. */
async function migrateTables(url: string, migrations: readonly Migration[]): Promise<void> {
  const database = openDatabase({ url, isPatient: true });
  try {
    await migrate(database, migrations);
  } finally {
    await database.close();
  }
}

/**
 * A pooler that shares sessions, and gives each transaction one that is free, loses their settings and prepared statements. It
 * gives the session that was used last to the next transaction.
 */
async function assertOwnSessions(database: Database, other: Database): Promise<void> {
  const sessionOf = async (queries: Queries): Promise<number | undefined> =>
    (await queries.rows<{ session: number }>(sql.session))[0]?.session;
  const session = await sessionOf(other);
  if ((await database.transaction(sessionOf)) === session) {
    const cause = new Error('two connections have one session');
    throw new ServiceError('service_unavailable', 'the catalog cannot be used', { cause });
  }
}

/** A new catalog gets this pepper. Returns whether the catalog has it, as `other` reads it on connections of its own. */
async function adoptPepper(database: Database, other: Database, fingerprint: Uint8Array): Promise<boolean> {
  await database.rows(sql.nameCatalog, [randomUUID(), Buffer.from(fingerprint)]);
  const [row] = await other.rows<{ key_pepper: Buffer }>(sql.readPepper);
  if (row === undefined) throw unkeptWrites();
  return row.key_pepper.equals(fingerprint);
}

function unkeptWrites(): ServiceError {
  return new ServiceError(
    'service_unavailable',
    'the catalog answers writes and does not keep them: another connection does not see what one has written. Does a pooler or a proxy stand before PostgreSQL?',
  );
}

function otherPepper(): ServiceError {
  return new ServiceError(
    'service_unavailable',
    'the keys of this catalog were made with another pepper: MAXSIMD_KEY_PEPPER_FILE must be the same on every node',
  );
}

/** Identifiers are given in the order of the calls. */
function idAllocator(database: Database): Catalog['allocateIds'] {
  // An epoch that begins here passes identifiers over first.
  let turn: Promise<unknown> = Promise.resolve();
  return (count) => {
    const ids = turn.then(async () => {
      const rows = await database.rows<{ id: number }>(sql.allocateIds, [count]);
      return rows.map(({ id }) => id);
    });
    turn = ids.catch(() => undefined);
    return ids;
  };
}
