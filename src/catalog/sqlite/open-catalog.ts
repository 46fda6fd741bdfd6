/**
 * The SQLite catalog: two databases in the data directory.
 *
 * `catalog.db` commits with `synchronous=FULL`: what it answers survives a power cut. `usage.db` commits
 * with `synchronous=NORMAL`, to the operating system only; what a search is charged waits not even for that
 * (`usage-journal.ts`).
 * Each has one writer thread in this process (started by the first write); other processes, the command
 * line among them, may write at the same time and are waited for. Small reads run on the calling thread,
 * reads of documents in a reader thread, loading a whole index in another.
 */
import path from 'node:path';
import type { Catalog, IndexState, UsageEvent } from '../contract.ts';
import { ServiceError, assertInvariant, invalid } from '../../errors.ts';
import { syncDirectory } from '../sync-directory.ts';
import type { CatalogOperations } from './catalog-operations.ts';
import { openReader, openWriter, toOperatingError } from './connection.ts';
import type { Connection, Durability } from './connection.ts';
import { IdPool } from './id-pool.ts';
import type { ReadOperations } from './read-operations.ts';
import { catalogMigrations, migrate, usageMigrations } from './schema.ts';
import type { Migrations } from './schema.ts';
import { smallReads } from './small-reads.ts';
import type { SmallReads } from './small-reads.ts';
import { ThreadClient } from './thread-client.ts';
import type { ThreadOptions } from './thread-client.ts';
import type { ReaderThreadData } from './reader-thread.ts';
import { foldJournals, removeAbandonedJournals } from './usage-journal.ts';
import { UsageLedger } from './usage-ledger.ts';
import type { WriterThreadData } from './writer-thread.ts';

export interface OpenCatalogOptions {
  /** Existing directory (`prepareDataDirectory`). */
  readonly directory: string;
  /** Purging or checkpointing failed; it is tried again by itself. For the log. */
  readonly onBackgroundFailure?: (error: Error) => void;
}

export interface SqliteCatalog extends Catalog {
  /**
   * Waits until the rows of deleted indexes and tenants are physically gone. They are purged in the
   * background anyway, by whichever process has the catalog open; this is for a process about to end.
   */
  purgeDeleted(): Promise<void>;
}

interface Database {
  readonly name: 'catalog' | 'usage';
  readonly migrations: Migrations;
  readonly durability: Durability;
}

const catalogDatabase: Database = {
  name: 'catalog',
  migrations: catalogMigrations,
  durability: 'power_loss',
};
const usageDatabase: Database = { name: 'usage', migrations: usageMigrations, durability: 'process_death' };

/** Longer than any transaction of ours, in whichever process. */
const busyTimeoutMs = 10_000;
/** How soon deletions of another process are purged here. */
const maintenanceIntervalMs = 30_000;
const idBlockSize = 4096;
const forgetRowsMax = 512;
const truncateAttemptsMax = 200;
const monthPattern = /^\d{4}-(?:0[1-9]|1[0-2])$/;

type CatalogWriter = CatalogOperations & { readonly truncateWal: () => boolean };

/** Opens the catalog, creating or migrating its databases. */
export async function openCatalog(options: OpenCatalogOptions): Promise<SqliteCatalog> {
  const { directory } = options;
  const onBackgroundFailure = options.onBackgroundFailure ?? (() => undefined);
  const connections: Connection[] = [];
  try {
    for (const database of [catalogDatabase, usageDatabase]) {
      connections.push(await openForReading(directory, database));
    }
    await syncDirectory(directory);
  } catch (error) {
    for (const connection of connections) connection.close();
    throw toOperatingError(error);
  }
  const [catalogConnection, usageConnection] = connections as [Connection, Connection];
  const reads = smallReads(catalogConnection, usageConnection, directory);

  const writerThread = (database: Database): ThreadOptions => ({
    entry: 'writer-thread',
    data: {
      database: database.name,
      path: fileOf(directory, database),
      durability: database.durability,
      busyTimeoutMs,
      maintenanceIntervalMs,
    } satisfies WriterThreadData,
    onBackgroundFailure,
  });
  const readerThread: ThreadOptions = {
    entry: 'reader-thread',
    data: { path: fileOf(directory, catalogDatabase) } satisfies ReaderThreadData,
    onBackgroundFailure,
  };
  const writer = new ThreadClient<CatalogWriter>(writerThread(catalogDatabase));
  const usage = new UsageLedger(directory, writerThread(usageDatabase));
  const pointReader = new ThreadClient<ReadOperations>(readerThread);
  const scanReader = new ThreadClient<ReadOperations>(readerThread);
  const ids = new IdPool((count) => writer.request('reserveIds', count), idBlockSize);
  let closed: Promise<void> | undefined;

  const erased = reads.erasedTenantsWithUsage().map((tenantId) => usage.eraseTenant(tenantId));
  await Promise.all(erased).catch(onBackgroundFailure);

  return {
    ...readsOf(reads),
    createTenant: (input) => writer.request('createTenant', input),
    setTenantSuspended: (tenantId, suspended) =>
      writer.request('setTenantSuspended', { tenantId, suspended }),
    setTenantLimits: (tenantId, limits) => writer.request('setTenantLimits', { tenantId, limits }),
    async deleteTenant(tenantId) {
      const deleted = await writer.request('deleteTenant', tenantId);
      if (deleted !== undefined) await usage.eraseTenant(tenantId);
      return deleted;
    },
    createKey: (input) => writer.request('createKey', input),
    revokeKey: (keyId) => writer.request('revokeKey', keyId),

    createIndex: (index, indexesMax) => writer.request('createIndex', { index, indexesMax }),
    setIndexStatus: (indexId, status) => writer.request('setIndexStatus', { indexId, status }),
    deleteIndex: (tenantId, indexId) => writer.request('deleteIndex', { tenantId, indexId }),

    allocateIds: (count) => ids.allocate(count),
    async commitUpsert(input) {
      checkUsage(input.usage);
      for (const { docId } of input.documents) checkDocId(docId);
      return writer.request('commitUpsert', input);
    },
    async commitDelete(input) {
      checkUsage(input.usage);
      checkDocId(input.docId);
      return writer.request('commitDelete', input);
    },
    countStored: (indexId, docIds) => pointReader.request('countStored', { indexId, docIds }),
    async resolveVersions(indexId, versionIds) {
      const rows = await pointReader.request('resolveVersions', { indexId, versionIds });
      return new Map(rows.map(({ versionId, docId, metadata }) => [versionId, { docId, metadata }]));
    },

    createSegment: (segment) => writer.request('createSegment', segment),
    sealSegment: (segmentId, records) => writer.request('sealSegment', { segmentId, records }),
    loadIndexState: (indexId): Promise<IndexState> => scanReader.request('loadIndexState', indexId),
    swapSegments: (input) => writer.request('swapSegments', input),
    async forgetDeadVersions(indexId, generation) {
      let forgotten = 0;
      for (;;) {
        const limit = forgetRowsMax;
        const batch = await writer.request('forgetDeadVersions', { indexId, generation, limit });
        forgotten += batch;
        if (batch < limit) return forgotten;
      }
    },

    async recordUsage(event) {
      checkUsage(event);
      usage.record(event);
    },
    async ping() {
      await Promise.all([
        writer.request('ping', undefined),
        usage.ping(),
        // Every thread a request may need is up before the first one waits for it.
        pointReader.request('countStored', { indexId: '', docIds: [] }),
      ]);
    },
    async purgeDeleted() {
      while (await writer.request('purgeStep', undefined));
      // Each attempt waits a moment for readers; ours are never long.
      for (let attempt = 0; attempt < truncateAttemptsMax; attempt++) {
        if (await writer.request('truncateWal', undefined)) return;
      }
      throw new ServiceError('service_unavailable', 'a reader keeps the write-ahead log from being emptied');
    },
    close() {
      closed ??= closeAll();
      return closed;
    },
  };

  async function closeAll(): Promise<void> {
    // Readers first: the last writer then leaves the databases without a WAL.
    for (const connection of connections) connection.close();
    for (const thread of [pointReader, scanReader, usage, writer]) await thread.close();
  }
}

/** The reads of the calling thread as the contract has them: failures are rejections. */
function readsOf(reads: SmallReads) {
  // `async` functions: they run until their end at the call, and their errors become rejections.
  const operating =
    <Parameters extends readonly unknown[], Result>(read: (...parameters: Parameters) => Result) =>
    async (...parameters: Parameters): Promise<Result> => {
      try {
        return read(...parameters);
      } catch (error) {
        throw toOperatingError(error);
      }
    };
  return {
    listTenants: operating(reads.listTenants),
    getTenant: operating(reads.getTenant),
    listKeys: operating(reads.listKeys),
    findKey: operating(reads.findKey),
    listIndexes: operating(reads.listIndexes),
    getIndex: operating(reads.getIndex),
    listIndexIds: operating(reads.listIndexIds),
    usageTotals: operating(reads.usageTotals),
  };
}

async function openForReading(directory: string, database: Database): Promise<Connection> {
  const file = fileOf(directory, database);
  const connection = await openWriter({ path: file, durability: database.durability, busyTimeoutMs });
  try {
    migrate(connection, database.migrations);
    if (database === usageDatabase) foldLeftovers(connection, directory);
    // While the writing connection is open: a reader can neither create a database nor its WAL.
    return openReader(file);
  } finally {
    connection.close();
  }
}

/** Usage that a process recorded and did not live to fold; files of living ones are folded as far as they go. */
function foldLeftovers(connection: Connection, directory: string): void {
  connection.transaction(() => foldJournals(connection, directory)).immediate();
  removeAbandonedJournals(connection, directory);
}

function fileOf(directory: string, database: Database): string {
  return path.join(directory, `${database.name}.db`);
}

function checkUsage(event: UsageEvent): void {
  assertInvariant(monthPattern.test(event.month), `${event.month} is not a month`);
}

/** A lone surrogate has no UTF-8 form: SQLite would store another document's name. */
function checkDocId(docId: string): void {
  if (!docId.isWellFormed()) throw invalid('doc_id', 'doc_id is not well-formed Unicode');
}
