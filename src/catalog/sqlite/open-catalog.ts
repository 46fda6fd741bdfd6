/**
 * The SQLite catalog: two databases in the data directory.
 *
 * `catalog.db` commits with `synchronous=FULL`: what it answers survives a power cut. It has one writer thread in this
 * process (started by the first write). Small reads run on the calling thread. Three threads read documents: one by
 * their numbers, for searches; one lists of them; one whole indexes. `usage.db` commits to the operating system, on the calling
 * thread (`usage-ledger.ts`). Other processes, the command line among them, may write at the same time and
 * are waited for.
 */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { unnamedActor, type Catalog, type CatalogActs, type ResolvedVersion } from '../contract.ts';
import type { UsageEvent } from '../../document-commits.ts';
import type { IndexState } from '../../index-state.ts';
import { ServiceError, assertInvariant, invalid } from '../../errors.ts';
import { createKeyPepper, fingerprintOf } from '../key-pepper.ts';
import { SpaceReserve } from '../space-reserve.ts';
import { assertNoProblem, catalogFile, inspectCatalogFiles } from './catalog-files.ts';
import type { CatalogOperations } from './operations/catalog-operations.ts';
import type { CheckpointThreadData } from './threads/checkpoint-thread.ts';
import { isOutOfSpace, openReader, openWriter, operating, toOperatingError } from './connection.ts';
import type { Connection } from './connection.ts';
import { IdPool } from './operations/id-pool.ts';
import type { ReadOperations } from './reads/read-operations.ts';
import { catalogMigrations, migrate } from './schema.ts';
import { keyReads } from './reads/key-reads.ts';
import { smallReads, type SmallReads } from './reads/small-reads.ts';
import { usageReads } from './reads/usage-reads.ts';
import { ThreadClient } from './threads/thread-client.ts';
import type { ThreadOptions } from './threads/thread-client.ts';
import type { ReaderThreadData } from './threads/reader-thread.ts';
import { UsageLedger } from './usage/usage-ledger.ts';
import { usageFile } from './usage/usage-store.ts';
import type { WriterThreadData } from './threads/writer-thread.ts';

export interface OpenCatalogOptions {
  /** Existing directory (`prepareDataDirectory`). */
  readonly directory: string;
  /** A new directory is refused, and left as it is. */
  readonly mustExist?: boolean;
  /** This process holds the directory's lock: it keeps the reserve of space, and replaces a damaged usage ledger. */
  readonly owned?: boolean;
  /** Purging or checkpointing failed; it is tried again by itself. For the log. */
  readonly onBackgroundFailure?: (error: Error) => void;
  /** What the operator should know. For the log. */
  readonly onNotice?: (notice: string, cause?: unknown) => void;
  /** Who writes, for the audit log. */
  readonly actor?: string;
}

export interface SqliteCatalog extends Catalog {
  /** What API keys are hashed with. */
  keyPepper(): Uint8Array;
  /**
   * Waits until the rows of deleted indexes and tenants are physically gone. They are purged in the
   * background anyway, by whichever process has the catalog open; this is for a process about to end.
   */
  purgeDeleted(): Promise<void>;
  /** Tenants whose usage waits in memory to be written, by month. */
  usageWaiting(): number;
}

/** Longer than any transaction of ours, in whichever process. */
const busyTimeoutMs = 10_000;
/** How long a checkpoint of the usage ledger waits for readers: usage waits for it. */
const checkpointTimeoutMs = 50;
/** How soon deletions of another process are purged here. */
const maintenanceIntervalMs = 30_000;
/** How soon it is found that there is room for the reserve again. */
const reserveIntervalMs = 5_000;
const idBlockSize = 4096;
const forgetRowsMax = 512;
const truncateAttemptsMax = 200;
const monthPattern = /^\d{4}-(?:0[1-9]|1[0-2])$/;

type CatalogWriter = CatalogOperations & { readonly truncateWal: () => boolean };

/**
 * Opens the catalog, creating or migrating its databases. A used directory whose files do not belong together, or
 * that lacks one of them, is refused.
 */
export async function openCatalog(options: OpenCatalogOptions): Promise<SqliteCatalog> {
  const { directory } = options;
  const onBackgroundFailure = options.onBackgroundFailure ?? (() => undefined);
  const onNotice = options.onNotice ?? (() => undefined);
  const owned = options.owned ?? false;
  const file = path.join(directory, catalogFile);
  const reserve = new SpaceReserve(directory);
  const { connection, keyPepper } = await openCatalogDatabase(file, {
    reserve,
    mustExist: options.mustExist ?? false,
  });
  let opened: UsageLedger | undefined;
  try {
    opened = await UsageLedger.open({
      directory,
      owned,
      reserve,
      thread: {
        entry: 'checkpoint-thread',
        data: {
          path: path.join(directory, usageFile),
          busyTimeoutMs: checkpointTimeoutMs,
        } satisfies CheckpointThreadData,
        onBackgroundFailure,
      },
      onNotice,
    });
  } catch (error) {
    connection.close();
    await opened?.close();
    throw error;
  }
  const usage = opened;
  const reads = { ...smallReads(connection), ...keyReads(connection), ...usageReads(connection, usage) };

  const damagedIndexes = new Set<string>();
  const readerThread: ThreadOptions = {
    entry: 'reader-thread',
    data: { path: file } satisfies ReaderThreadData,
    onBackgroundFailure,
    onDamagedIndex(indexId, error) {
      if (damagedIndexes.has(indexId)) return;
      damagedIndexes.add(indexId);
      const reason = `what ${catalogFile} holds of index ${indexId} is damaged`;
      onBackgroundFailure(new Error(reason, { cause: error }));
      writer.request('setIndexStatus', { indexId, status: 'error' }).catch(onBackgroundFailure);
    },
  };
  const writer = new ThreadClient<CatalogWriter>({
    entry: 'writer-thread',
    data: {
      path: file,
      reserve: reserve.shared,
      busyTimeoutMs,
      maintenanceIntervalMs,
      actor: options.actor ?? unnamedActor,
    } satisfies WriterThreadData,
    onBackgroundFailure,
  });
  const pointReader = new ThreadClient<ReadOperations>(readerThread);
  const scanReader = new ThreadClient<ReadOperations>(readerThread);
  const stateReader = new ThreadClient<ReadOperations>(readerThread);
  const ids = new IdPool((count) => writer.request('reserveIds', count), idBlockSize);
  const stopKeeping = owned ? await keepReserve(reserve, onNotice) : undefined;
  let closed: Promise<void> | undefined;

  // Tenants that left usage behind when they were erased (a crash between the two databases). In this order: one that
  // is created in between is not mistaken for them.
  try {
    for (const tenantId of usage.tenantIds()) {
      if (reads.getTenant(tenantId) === undefined) usage.eraseTenant(tenantId);
    }
  } catch (error) {
    await closeAll();
    throw toOperatingError(error);
  }

  const actsBy = (by: string | undefined): CatalogActs => ({
    createTenant: (input) => writer.request('createTenant', { ...input, by }),
    setTenantSuspended: (tenantId, suspended) =>
      writer.request('setTenantSuspended', { tenantId, suspended, by }),
    setTenantLimits: (tenantId, limits) => writer.request('setTenantLimits', { tenantId, limits, by }),
    async deleteTenant(tenantId) {
      const deleted = await writer.request('deleteTenant', { tenantId, by });
      if (deleted !== undefined) usage.eraseTenant(tenantId);
      return deleted;
    },
    createKey: (input) => writer.request('createKey', { ...input, by }),
    revokeKey: (keyId) => writer.request('revokeKey', { keyId, by }),
    noteRefusedLogin: (detail) => writer.request('noteRefusedLogin', { detail, by }),
  });

  return {
    keyPepper: () => keyPepper,
    ...readsOf(reads),
    ...actsBy(undefined),
    actingAs: actsBy,
    endSession: (session) => writer.request('endSession', session),

    async createIndex(index, indexesMax) {
      assertRoom(reserve);
      return writer.request('createIndex', { index, indexesMax });
    },
    setIndexStatus: (indexId, status) => writer.request('setIndexStatus', { indexId, status }),
    renameIndex: (tenantId, indexId, name) => writer.request('renameIndex', { tenantId, indexId, name }),
    swapIndexNames: (tenantId, indexId, otherId) =>
      writer.request('swapIndexNames', { tenantId, indexId, otherId }),
    deleteIndex: (tenantId, indexId) => writer.request('deleteIndex', { tenantId, indexId }),

    /** Whatever adds to a segment, or makes one, asks for ids first. */
    async allocateIds(count) {
      assertRoom(reserve);
      return ids.allocate(count);
    },
    async commitUpsert(input) {
      assertRoom(reserve);
      checkUsage(input.usage);
      for (const { docId } of input.documents) checkDocId(docId);
      return writer.request('commitUpsert', input);
    },
    async commitDelete(input) {
      checkUsage(input.usage);
      checkDocId(input.docId);
      return writer.request('commitDelete', input);
    },
    async commitDeleteVersions(input) {
      checkUsage(input.usage);
      return writer.request('commitDeleteVersions', input);
    },
    countStored: (indexId, docIds) => pointReader.request('countStored', { indexId, docIds }),
    resolveVersions: (indexId, versionIds) => resolveVersions(pointReader, indexId, versionIds),
    readMetadata: (indexId, versionIds) => resolveVersions(scanReader, indexId, versionIds),
    listDocuments: (indexId, page) => scanReader.request('listDocuments', { indexId, ...page }),
    findDocument: (indexId, docId) => pointReader.request('findDocument', { indexId, docId }),
    countDocuments: (indexId) => scanReader.request('countDocuments', { indexId }),

    createSegment: (segment) => writer.request('createSegment', segment),
    sealSegment: (segmentId, records) => writer.request('sealSegment', { segmentId, records }),
    loadIndexState: (indexId): Promise<IndexState> => stateReader.request('loadIndexState', { indexId }),
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
      await usage.record(event);
    },
    usageWaiting: () => usage.waiting,
    async ping() {
      await Promise.all([
        writer.request('ping', undefined),
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
    stopKeeping?.();
    connection.close();
    for (const thread of [pointReader, scanReader, stateReader, usage, writer]) await thread.close();
    if (owned) await reserve.leave();
  }
}

async function resolveVersions(
  reader: ThreadClient<ReadOperations>,
  indexId: string,
  versionIds: readonly number[],
): Promise<ReadonlyMap<number, ResolvedVersion>> {
  const rows = await reader.request('resolveVersions', { indexId, versionIds });
  return new Map(rows.map(({ versionId, docId, metadata }) => [versionId, { docId, metadata }]));
}

/** The reads of the calling thread as the contract has them: failures are rejections. */
function readsOf(reads: SmallReads & ReturnType<typeof keyReads> & ReturnType<typeof usageReads>) {
  return {
    listTenants: operating(reads.listTenants),
    getTenant: operating(reads.getTenant),
    listKeys: operating(reads.listKeys),
    findKey: operating(reads.findKey),
    hasSessionEnded: operating(reads.hasSessionEnded),
    listAudit: operating(reads.listAudit),
    listIndexes: operating(reads.listIndexes),
    getIndex: operating(reads.getIndex),
    listIndexIds: operating(reads.listIndexIds),
    listModelVersions: operating(reads.listModelVersions),
    usageTotals: operating(reads.usageTotals),
    usageDays: operating(reads.usageDays),
    rateWindows: operating(reads.rateWindows),
  };
}

/** Makes the reserve, and makes it again when it was used and there is room. Returns what ends that. */
async function keepReserve(reserve: SpaceReserve, onNotice: (notice: string) => void): Promise<() => void> {
  let held = true;
  const keep = async (): Promise<void> => {
    await reserve.keep();
    if (reserve.held !== held) {
      onNotice(
        reserve.held
          ? 'there is space on the disk again'
          : 'the disk is full: documents can be deleted, not added',
      );
    }
    held = reserve.held;
  };
  await keep();
  const timer = setInterval(() => void keep(), reserveIntervalMs).unref();
  return () => clearInterval(timer);
}

function assertRoom(reserve: SpaceReserve): void {
  if (reserve.held) return;
  throw new ServiceError('service_unavailable', 'the disk is full: documents can be deleted, not added', {
    retryAfterSeconds: reserveIntervalMs / 1000,
  });
}

async function openCatalogDatabase(
  file: string,
  options: { readonly reserve: SpaceReserve; readonly mustExist: boolean },
): Promise<{ readonly connection: Connection; readonly keyPepper: Uint8Array }> {
  const directory = path.dirname(file);
  try {
    const files = await inspectCatalogFiles(directory);
    assertNoProblem(files, directory);
    if (files.isNew && options.mustExist) {
      throw new ServiceError('not_found', `there is no catalog in ${directory}`);
    }
    const keyPepper = files.keyPepper ?? (await createKeyPepper(directory));
    return { keyPepper, connection: await openForReading(file, files.isNew ? keyPepper : undefined) };
  } catch (error) {
    if (isOutOfSpace(error) && options.reserve.release()) return openCatalogDatabase(file, options);
    throw toOperatingError(error);
  }
}

/** `newPepper`: the catalog is made, with keys of this pepper, unless another process is faster. */
async function openForReading(file: string, newPepper: Uint8Array | undefined): Promise<Connection> {
  const connection = await openWriter({
    path: file,
    durability: 'power_loss',
    busyTimeoutMs,
    mustExist: newPepper === undefined,
  });
  try {
    connection
      .transaction(() => {
        migrate(connection, catalogMigrations);
        if (newPepper !== undefined) nameCatalog(connection, newPepper);
      })
      .immediate();
    // While the writing connection is open: a reader can neither create a database nor its WAL.
    return openReader(file);
  } finally {
    connection.close();
  }
}

function nameCatalog(connection: Connection, keyPepper: Uint8Array): void {
  connection
    .prepare('INSERT INTO catalog (singleton, id, key_pepper) VALUES (1, ?, ?) ON CONFLICT DO NOTHING')
    .run(randomUUID(), fingerprintOf(keyPepper));
}

function checkUsage(event: UsageEvent): void {
  assertInvariant(monthPattern.test(event.month), `${event.month} is not a month`);
}

/** A lone surrogate has no UTF-8 form: SQLite would store another document's name. */
function checkDocId(docId: string): void {
  if (!docId.isWellFormed()) throw invalid('doc_id', 'doc_id is not well-formed Unicode');
}
