/**
 * The catalog of a data directory: two SQLite databases.
 *
 * `catalog.db` commits with `synchronous=FULL`, so that a settled write survives a power cut. One thread writes; the first
 * write starts it. Small reads run on the calling thread. Three threads read documents: one by their numbers, for searches;
 * one lists of them; one whole indexes.
 *
 * `usage.db` commits to the operating system, on the calling thread (`usage-ledger.ts`).
 *
 * Other processes, the command line among them, may write at the same time. Each waits for the transactions of the others.
 */
import path from 'node:path';
import { unnamedActor, type Catalog, type CatalogActs } from '../contract.ts';
import { ServiceError } from '../../errors.ts';
import { SpaceReserve } from '../space-reserve.ts';
import { assertDocId, assertUpsert, assertUsage } from '../checks.ts';
import { catalogFile } from './catalog-files.ts';
import { operating, toOperatingError } from './connection.ts';
import { assertRoom, busyTimeoutMs, keepReserve, openCatalogDatabase } from './opening.ts';
import type { CatalogOperations } from './operations/catalog-operations.ts';
import { IdPool } from './operations/id-pool.ts';
import { keyReads } from './reads/key-reads.ts';
import type { ReadOperations } from './reads/read-operations.ts';
import { smallReads } from './reads/small-reads.ts';
import { usageReads } from './reads/usage-reads.ts';
import type { CheckpointThreadData } from './threads/checkpoint-thread.ts';
import type { ReaderThreadData } from './threads/reader-thread.ts';
import { ThreadClient, type ThreadOptions } from './threads/thread-client.ts';
import type { WriterThreadData } from './threads/writer-thread.ts';
import { UsageLedger } from './usage/usage-ledger.ts';
import { usageFile } from './usage/usage-store.ts';

export interface OpenCatalogOptions {
  /** Existing directory (`prepareDataDirectory`). */
  readonly directory: string;
  /** A new directory is refused, and left as it is. */
  readonly mustExist?: boolean;
  /** This process holds the directory's lock. So it keeps the reserve of disk space and replaces a damaged usage ledger. */
  readonly owned?: boolean;
  /** Receives failures of purges and checkpoints, which are tried again. For the log. */
  readonly onBackgroundFailure?: (error: Error) => void;
  /** Receives notices for the operator. For the log. */
  readonly onNotice?: (notice: string, cause?: unknown) => void;
  /** The actor of this process's entries in the audit log. */
  readonly actor?: string;
}

export interface SqliteCatalog extends Catalog {
  /** The secret that API keys are hashed with, 32 bytes. */
  keyPepper(): Uint8Array;
  /**
   * Waits until the rows of deleted indexes and tenants are physically gone. Every process that has the catalog open purges
   * them in the background. This method is for a process that is about to end.
   */
  purgeDeleted(): Promise<void>;
  /** Tenants, by month, whose usage waits in memory to be written. */
  usageWaiting(): number;
}

/** How long a checkpoint of the usage ledger waits for readers. Usage waits as long. */
const checkpointTimeoutMs = 50;
/** How soon deletions of another process are purged here. */
const maintenanceIntervalMs = 30_000;
const idBlockSize = 4096;
const forgetRowsMax = 512;
const truncateAttemptsMax = 200;

type Writer = ThreadClient<CatalogOperations & { readonly truncateWal: () => boolean }>;

/** Creates or migrates the databases. Refuses a used directory whose files do not belong together, or that lacks one. */
export async function openCatalog(options: OpenCatalogOptions): Promise<SqliteCatalog> {
  const { directory, owned = false, mustExist = false, onNotice = () => undefined } = options;
  const { actor = unnamedActor } = options;
  const reserve = new SpaceReserve(directory);
  const file = path.join(directory, catalogFile);
  const { connection, keyPepper } = await openCatalogDatabase(file, { reserve, mustExist });
  const usage = await openLedger(options, reserve).catch((error: unknown) => {
    connection.close();
    throw error;
  });
  const reads = { ...smallReads(connection), ...keyReads(connection), ...usageReads(connection, usage) };
  const threads = threadsOf(file, reserve, options.onBackgroundFailure);
  const { writer } = threads;
  const stopKeeping = owned ? await keepReserve(reserve, onNotice) : undefined;
  const closeAll = async (): Promise<void> => {
    stopKeeping?.();
    connection.close();
    // The last to close a database removes its WAL. A reader cannot do that, so the writer is closed last.
    const { pointReader, scanReader, stateReader } = threads;
    for (const each of [pointReader, scanReader, stateReader, usage, writer]) await each.close();
    if (owned) await reserve.leave();
  };
  try {
    eraseOrphans(usage, reads.getTenant);
  } catch (error) {
    await closeAll();
    throw toOperatingError(error);
  }
  let closed: Promise<void> | undefined;
  return {
    keyPepper: () => keyPepper,
    ...operating(reads),
    ...actsBy(actor, writer, usage),
    actingAs: (other) => actsBy(other, writer, usage),
    ...guardedWrites(writer, reserve, actor),
    updateIndex: (...input) => writer.request('updateIndex', actor, ...input),
    ...documentReads(threads),
    ...writer.methods('endSession', 'setIndexStatus', 'swapIndexNames', 'deleteIndex'),
    ...writer.methods('createSegment', 'sealSegment', 'swapSegments'),
    ...maintenance(threads),
    async noteKeyUse(keyId, atMs) {
      // The last room of a disk is for other things.
      if (reserve.held) await writer.request('noteKeyUse', keyId, atMs);
    },
    async recordUsage(event) {
      assertUsage(event);
      await usage.record(event);
    },
    usageWaiting: () => usage.waiting,
    close: () => (closed ??= closeAll()),
  };
}

async function openLedger(
  { directory, owned = false, onNotice, onBackgroundFailure }: OpenCatalogOptions,
  reserve: SpaceReserve,
): Promise<UsageLedger> {
  const file = path.join(directory, usageFile);
  return UsageLedger.open({
    directory,
    owned,
    reserve,
    thread: {
      entry: 'checkpoint-thread',
      data: { path: file, busyTimeoutMs: checkpointTimeoutMs } satisfies CheckpointThreadData,
      onBackgroundFailure: onBackgroundFailure ?? (() => undefined),
    },
    onNotice: onNotice ?? (() => undefined),
  });
}

/** A crash between the two databases leaves usage of a tenant that is erased already. */
function eraseOrphans(usage: UsageLedger, getTenant: (tenantId: string) => unknown): void {
  // The ledger is read first: a tenant that is created in between has no usage there yet.
  for (const tenantId of usage.tenantIds()) {
    if (getTenant(tenantId) === undefined) usage.eraseTenant(tenantId);
  }
}

/** The threads of `catalog.db`. Each starts with its first request. */
function threadsOf(file: string, reserve: SpaceReserve, onFailure: (error: Error) => void = () => undefined) {
  const writer: Writer = new ThreadClient({
    entry: 'writer-thread',
    data: {
      path: file,
      reserve: reserve.shared,
      busyTimeoutMs,
      maintenanceIntervalMs,
    } satisfies WriterThreadData,
    onBackgroundFailure: onFailure,
  });
  const damagedIndexes = new Set<string>();
  const options: ThreadOptions = {
    entry: 'reader-thread',
    data: { path: file } satisfies ReaderThreadData,
    onBackgroundFailure: onFailure,
    onDamagedIndex(indexId, error) {
      if (damagedIndexes.has(indexId)) return;
      damagedIndexes.add(indexId);
      onFailure(new Error(`the rows of index ${indexId} in ${catalogFile} are damaged`, { cause: error }));
      writer.request('setIndexStatus', indexId, 'error').catch(onFailure);
    },
  };
  const reader = () => new ThreadClient<ReadOperations>(options);
  return { writer, pointReader: reader(), scanReader: reader(), stateReader: reader() };
}
type Threads = ReturnType<typeof threadsOf>;

function actsBy(actor: string, writer: Writer, usage: UsageLedger): CatalogActs {
  return {
    createTenant: (tenant) => writer.request('createTenant', actor, tenant),
    setTenantSuspended: (...input) => writer.request('setTenantSuspended', actor, ...input),
    setTenantLimits: (...input) => writer.request('setTenantLimits', actor, ...input),
    async deleteTenant(tenantId) {
      const deleted = await writer.request('deleteTenant', actor, tenantId);
      if (deleted !== undefined) usage.eraseTenant(tenantId);
      return deleted;
    },
    createKey: (key) => writer.request('createKey', actor, key),
    revokeKey: (keyId) => writer.request('revokeKey', actor, keyId),
    noteRefusedLogin: (detail) => writer.request('noteRefusedLogin', actor, detail),
  };
}

/** Writes that are checked on this thread first. Those that add something are refused on a full disk. */
function guardedWrites(writer: Writer, reserve: SpaceReserve, actor: string) {
  const ids = new IdPool((count) => writer.request('reserveIds', count), idBlockSize);
  return {
    async createIndex(...input) {
      assertRoom(reserve);
      return writer.request('createIndex', actor, ...input);
    },
    // An upsert, and a merge, takes ids before it writes to a segment.
    async allocateIds(count) {
      assertRoom(reserve);
      return ids.allocate(count);
    },
    async commitUpsert(input) {
      assertRoom(reserve);
      assertUpsert(input);
      return writer.request('commitUpsert', input);
    },
    async commitDelete(input) {
      assertUsage(input.usage, input.tenantId);
      assertDocId(input.docId);
      return writer.request('commitDelete', input);
    },
    async commitDeleteVersions(input) {
      assertUsage(input.usage, input.tenantId);
      return writer.request('commitDeleteVersions', input);
    },
  } satisfies Partial<Catalog>;
}

function documentReads({ pointReader, scanReader, stateReader }: Threads) {
  return {
    ...pointReader.methods('countStored', 'resolveVersions', 'findDocument'),
    ...scanReader.methods(
      'firstVersions',
      'listDocuments',
      'countDocuments',
      'expiredIndexes',
      'expiredVersions',
    ),
    readMetadata: scanReader.methods('resolveVersions').resolveVersions,
    ...stateReader.methods('loadIndexState'),
  };
}

function maintenance({ writer, pointReader }: Threads) {
  return {
    async forgetDeadVersions(indexId, generation) {
      for (let forgotten = 0; ;) {
        const batch = await writer.request('forgetDeadVersions', indexId, generation, forgetRowsMax);
        forgotten += batch;
        if (batch < forgetRowsMax) return forgotten;
      }
    },
    async ping() {
      // The first search would wait for the start of its reader thread.
      await Promise.all([writer.request('ping'), pointReader.request('countStored', '', [])]);
    },
    async purgeDeleted() {
      while (await writer.request('purgeStep'));
      // Each attempt waits a moment for readers. Reads of this program never take long.
      for (let attempt = 0; attempt < truncateAttemptsMax; attempt++) {
        if (await writer.request('truncateWal')) return;
      }
      throw new ServiceError('service_unavailable', 'a reader keeps the write-ahead log from being emptied');
    },
  } satisfies Partial<SqliteCatalog>;
}
