/** Gives operations an index by its id: its row, which is cached for moments, and the open index. It also erases indexes. */
import type { RowShape } from '../../contracts/row-shape.ts';
import type { ClusterCatalog } from '../../catalog/cluster-contract.ts';
import type { Catalog, IndexChange, IndexRow } from '../../catalog/contract.ts';
import { ServiceError, invalid } from '../../errors.ts';
import type { IndexHead } from '../../contracts/index-state.ts';
import type { CommitWork, IndexStore, OpenIndex } from '../../index/contract.ts';
import type { RecallReport } from '../../index/recall/index-recall.ts';
import { otherModel } from '../../index/local-store.ts';
import { HotCache } from '../hot-cache.ts';
import { InFlight } from '../in-flight.ts';
import { assertKnownEverywhere } from '../node-report.ts';
import { OpenCache, type Opening, type SharedMemory } from '../open-cache.ts';

const rowsMax = 10_000;
const rowAgeMsMax = 2_000;
const openIndexesMax = 256;

export interface IndexesDeps {
  readonly catalog: Catalog;
  readonly store: IndexStore;
  readonly memory: SharedMemory;
  readonly nowMs: () => number;
  readonly onRemovalError: (indexId: string, error: unknown) => void;
  /** Present where other processes write, make and erase indexes, too. */
  readonly shared?: Pick<ClusterCatalog, 'readHead' | 'listNodes'>;
}

export class Indexes {
  readonly #deps: IndexesDeps;
  readonly #rows = new HotCache<IndexRow>({ rowsMax, ageMsMax: rowAgeMsMax });
  readonly #open: OpenCache<OpenIndex>;
  readonly #removals = new InFlight();

  constructor(deps: IndexesDeps) {
    this.#deps = deps;
    this.#open = new OpenCache({ openMax: openIndexesMax, ...deps });
  }

  /** The id of the index that has the name. No cache keeps it: the next request after a swap finds the other index. */
  async idOf(tenantId: string, name: string): Promise<string> {
    const indexId = await this.#deps.catalog.findIndexId(tenantId, name);
    if (indexId === undefined) throw missingIndex();
    return indexId;
  }

  /** The row of a tenant's index; 404 for any other. */
  async row(tenantId: string, indexId: string): Promise<IndexRow> {
    const { catalog, shared } = this.#deps;
    if (shared === undefined) return await this.recentRow(tenantId, indexId);
    const row = await catalog.getIndex(tenantId, indexId);
    if (row === undefined) throw missingIndex();
    return row;
  }

  /**
   * The row as it was moments ago. The index may have been erased since. Its use finds that out: the commit, the head, or a read
   * of its documents.
   */
  async recentRow(tenantId: string, indexId: string): Promise<IndexRow> {
    const row = await this.#rows.get(rowKey(tenantId, indexId), () =>
      this.#deps.catalog.getIndex(tenantId, indexId),
    );
    if (row === undefined) throw missingIndex();
    return row;
  }

  /** The recent row of an index that can be searched and written. */
  async usableRow(tenantId: string, indexId: string): Promise<IndexRow> {
    return usable(await this.recentRow(tenantId, indexId));
  }

  /** The row of an index that is about to be written. Its match fields are those of now, also if another process set them. */
  async writableRow(tenantId: string, indexId: string): Promise<IndexRow> {
    return usable(await this.row(tenantId, indexId));
  }

  /** Where other processes write, too: the head of the index after the call. 404 if the index has gone. */
  head(indexId: string): Promise<IndexHead> | undefined {
    const head = this.#deps.shared?.readHead(indexId).then((found) => {
      if (found === undefined) throw missingIndex();
      return found;
    });
    // The read of the index awaits it. Until then a failure must not count as unhandled.
    head?.catch(() => undefined);
    return head;
  }

  /**
   * Runs `work` on the open index. `model` is that of the index. 404 if `work` fails and the index has gone by then: while an index
   * is being erased, any part of it may be missing.
   */
  async use<T>(
    row: IndexRow,
    work: (index: OpenIndex) => Promise<T>,
    { dim, rowBits }: RowShape,
  ): Promise<T> {
    try {
      return await this.#open.use(row.id, this.#openingOf(row, { dim, rowBits }), async (index) => {
        // It may have been opened without a model.
        if (index.shape.dim !== dim || index.shape.rowBits !== rowBits) throw otherModel();
        return await work(index);
      });
    } catch (error) {
      const isOfCaller = error instanceof ServiceError && error.httpStatus < 500;
      if (!isOfCaller) await this.assertExists(row.tenantId, row.id);
      throw error;
    }
  }

  /** Does the same for work that needs no model. 503 when the index has no segments. */
  useWithoutModel<T>(
    row: Pick<IndexRow, 'id' | 'tenantId'>,
    work: (index: OpenIndex) => Promise<T>,
  ): Promise<T> {
    return this.#open.use(row.id, this.#openingOf(row), work);
  }

  #openingOf({ id, tenantId }: Pick<IndexRow, 'id' | 'tenantId'>, shape?: RowShape): Opening<OpenIndex> {
    const open = () => this.#deps.store.open(id, { tenantId, ...(shape && { shape }) });
    return { owner: tenantId, open };
  }

  /** Closes an idle index, so that one of this tenant finds room in memory. False if none may be closed for it. */
  makeRoom(tenantId: string): Promise<boolean> {
    return this.#open.makeRoom(tenantId);
  }

  /** Runs `work` if the index is open or being opened. */
  useIfOpen<T>(indexId: string, work: (index: OpenIndex) => Promise<T>): Promise<T | undefined> {
    return this.#open.useIfOpen(indexId, work);
  }

  /** Runs a transaction that only ends versions, without opening the index. */
  async commitDelete<T extends object>(
    indexId: string,
    transaction: () => Promise<CommitWork<T>>,
  ): Promise<T> {
    const open = await this.useIfOpen(indexId, (index) => index.commitDelete(transaction));
    if (open !== undefined) return open;
    const { result, commit } = await transaction();
    // If another request has opened the index meanwhile, that may have read the state before the delete.
    if (commit !== undefined) await this.useIfOpen(indexId, (index) => index.catchUp(commit.generation));
    return result;
  }

  /** 404 if the index has gone by now, whatever the cache says. */
  async assertExists(tenantId: string, indexId: string): Promise<void> {
    if ((await this.#deps.catalog.getIndex(tenantId, indexId)) !== undefined) return;
    this.#rows.forget(rowKey(tenantId, indexId));
    throw missingIndex();
  }

  /**
   * A node of an earlier release would write documents without match terms.
   * @throws {ServiceError} `service_unavailable` while there is one.
   */
  async assertMatchable(matchFields: readonly string[]): Promise<void> {
    const { shared } = this.#deps;
    if (matchFields.length > 0 && shared !== undefined)
      await assertKnownEverywhere(shared, 'match_fields', 'match fields');
  }

  async update(tenantId: string, indexId: string, change: IndexChange): Promise<IndexRow> {
    await this.assertMatchable(change.matchFields ?? []);
    const updated = await this.#deps.catalog.updateIndex(tenantId, indexId, change);
    this.#rows.forget(rowKey(tenantId, indexId));
    if (updated.outcome === 'index_missing') throw missingIndex();
    if (updated.outcome === 'duplicate_name') throw duplicateName();
    return updated.index;
  }

  async swapNames(tenantId: string, indexId: string, otherId: string): Promise<IndexRow> {
    if (indexId === otherId) throw invalid('swap_name_with', 'must be another index', 'same_index');
    const swapped = await this.#deps.catalog.swapIndexNames(tenantId, indexId, otherId);
    for (const id of [indexId, otherId]) this.#rows.forget(rowKey(tenantId, id));
    if (swapped === undefined) throw missingIndex();
    return swapped;
  }

  /**
   * Erases an index. The row goes first, so that nothing refers to the files from then on. The files go once the requests that
   * use the index have ended. If that fails, upkeep or the next start removes them.
   */
  async erase(tenantId: string, indexId: string): Promise<boolean> {
    const erased = await this.#deps.catalog.deleteIndex(tenantId, indexId);
    this.#rows.forget(rowKey(tenantId, indexId));
    if (erased) {
      this.#removeFiles(indexId).catch((error: unknown) => this.#deps.onRemovalError(indexId, error));
    }
    return erased;
  }

  /** Closes an index that the catalog does not have any more, and removes its files. */
  async #removeFiles(indexId: string): Promise<void> {
    const leave = this.#removals.enter();
    try {
      await this.#open.close(indexId);
      await this.#deps.store.removeIndex(indexId);
    } finally {
      leave();
    }
  }

  storedIds(): Promise<readonly string[]> {
    return this.#deps.store.storedIndexIds();
  }

  /** Removes the files of indexes that the catalog does not have: those of erased tenants, or left by a crash. */
  async removeUnknown(): Promise<void> {
    // Files are listed before rows, because an index gets files only after it has a row.
    const stored = await this.storedIds();
    const known = new Set(await this.#deps.catalog.listIndexIds());
    for (const indexId of stored) if (!known.has(indexId)) await this.#removeFiles(indexId);
  }

  /** Forgets rows and closes open indexes when the catalog begins another epoch. Requests in flight notice it by themselves. */
  async forgetAll(): Promise<void> {
    this.#rows.forgetAll();
    await this.#open.closeAll();
  }

  /** Gives up the background work of open indexes. Requests in flight go on. */
  windDown(): void {
    for (const index of this.#open.opened()) index.windDown();
  }

  /** `undefined` until an index that is open now was measured. */
  recallOf(indexId: string): RecallReport | undefined {
    return this.#open.peek(indexId)?.recall;
  }

  openIndexes(): readonly OpenIndex[] {
    return this.#open.opened();
  }

  /** `undefined` if it is not open here. */
  bytesIfOpen(indexId: string): number | undefined {
    const segments = this.#open.peek(indexId)?.statistics().segments;
    return segments?.reduce((sum, { fileBytes, derivedBytes }) => sum + fileBytes + derivedBytes, 0);
  }

  openIds(): readonly string[] {
    return this.#open.openKeys();
  }

  async close(): Promise<void> {
    await this.#open.closeAll();
    await this.#removals.idle();
  }
}

function usable(row: IndexRow): IndexRow {
  if (row.status === 'error') throw new ServiceError('internal_error', 'the index is damaged');
  return row;
}

export function missingIndex(): ServiceError {
  return new ServiceError('not_found', 'no such index');
}

export function duplicateName(): ServiceError {
  return invalid('name', 'an index with this name exists', 'duplicate');
}

function rowKey(tenantId: string, indexId: string): string {
  return `${tenantId} ${indexId}`;
}
