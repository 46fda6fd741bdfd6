/** Binds the functions of the catalog that an open index needs to one index. */
import type { ClusterCatalog } from '../../catalog/cluster-contract.ts';
import type { Catalog } from '../../catalog/contract.ts';
import type { IndexChanges, IndexState } from '../../contracts/index-state.ts';
import { assertInvariant } from '../../errors.ts';
import type { IndexCatalog, OwnIndexCatalog, SharedIndexCatalog } from '../../index/catalog.ts';
import type { ClusterEvents } from '../../index/cluster/cluster-events.ts';
import { mergeTurnMs } from '../../index/merging/merge-turn.ts';
import { missingIndex } from './indexes.ts';

/** For an index that only this process writes to. Its turn to merge never ends. */
export function ownSegments(catalog: Catalog, indexId: string): OwnIndexCatalog {
  return {
    ...functionsOfBoth(catalog, indexId),
    changesSince: async (open) => changesOf(await catalog.loadIndexState(indexId), open),
    sealSegment: (segmentId, records) => catalog.sealSegment(segmentId, records),
    commitUpserts: (upserts) => Promise.allSettled(upserts.map((upsert) => catalog.commitUpsert(upsert))),
    beginMerge: async () => ({
      renew: async () => true,
      place: (segmentId, { versionIds, records }) =>
        catalog.swapSegments({
          indexId,
          removedSegmentIds: [],
          moves: Array.from(versionIds, (versionId, place) => ({
            versionId,
            to: { segmentId, record: records[place] ?? 0 },
          })),
        }),
      async swap({ removedSegmentIds }) {
        await catalog.swapSegments({ indexId, removedSegmentIds, moves: [] });
        return true;
      },
      release: async () => undefined,
    }),
  };
}

/** For an index that nodes share. Tells `events` of leases and commits. */
export function sharedSegments(
  catalog: ClusterCatalog,
  indexId: string,
  nodeId: string,
  events?: Pick<ClusterEvents, 'lease' | 'committed'>,
): SharedIndexCatalog {
  /** Tells `events` of a call that keeps the turn, or finds it lost (false). */
  const noted = async (kept: Promise<boolean>, event?: 'renewed'): Promise<boolean> => {
    const isKept = await kept;
    if (!isKept) events?.lease('lost');
    else if (event !== undefined) events?.lease(event);
    return isKept;
  };
  return {
    ...functionsOfBoth(catalog, indexId),
    readHead: () => existing(catalog.readHead(indexId)),
    changesSince: (open) => existing(catalog.changesSince({ indexId, ...open })),
    async commitUpserts(upserts) {
      const results = await catalog.commitUpserts(upserts);
      events?.committed(upserts.length);
      return results;
    },
    async beginMerge() {
      const lease = await catalog.acquireMergeLease(indexId, nodeId, mergeTurnMs);
      events?.lease(lease === undefined ? 'refused' : 'taken');
      return (
        lease && {
          renew: () => noted(catalog.renewMergeLease(lease, mergeTurnMs), 'renewed'),
          place: (segmentId, moves) => catalog.placeVersions(segmentId, moves),
          swap: (merged) => noted(catalog.swapMerged({ lease, ...merged })),
          release: () => catalog.releaseMergeLease(lease),
        }
      );
    },
  };
}

/** The functions that both catalogs have alike. */
function functionsOfBoth(
  catalog: Catalog,
  indexId: string,
): Pick<IndexCatalog, 'allocateSegmentId' | 'createSegment' | 'readMetadata' | 'forgetDeadVersions'> {
  return {
    async allocateSegmentId() {
      const [id] = await catalog.allocateIds(1);
      assertInvariant(id !== undefined, 'one id was asked for');
      return id;
    },
    createSegment: (segment) => catalog.createSegment({ ...segment, indexId }),
    readMetadata: (versionIds) => catalog.readMetadata(indexId, versionIds),
    forgetDeadVersions: (generation) => catalog.forgetDeadVersions(indexId, generation),
  };
}

/** The difference between a state and an open index that has its commits up to `generation`, and these segments. */
function changesOf(
  { generation: newest, segments, versions }: IndexState,
  { generation, segmentIds }: Parameters<IndexCatalog['changesSince']>[0],
): IndexChanges {
  const known = new Set(segmentIds);
  // An open index that has nothing lacks every row, which may be a million.
  const rows = known.size === 0 ? [] : [...versions.versionIds.keys()];
  const isOld = (row: number): boolean =>
    known.has(versions.segmentIds[row] ?? 0) && (versions.born[row] ?? 0) <= generation;
  const lacking = rows.filter((row) => !isOld(row));
  const dying = rows.filter((row) => isOld(row) && (versions.died[row] ?? 0) > generation);
  return {
    generation: newest,
    // One process places records and tells no other: it has one layout and one epoch.
    layout: 0,
    epoch: '',
    segments: segments.map(({ id, blob, state, recordsReferenced: records }) => ({
      id,
      blob,
      state,
      records,
      files: [],
    })),
    versions: known.size === 0 ? versions : rowsOf(versions, lacking),
    died: rowsOf(versions, dying),
  };
}

function rowsOf(versions: IndexState['versions'], rows: readonly number[]): IndexState['versions'] {
  const pick = (column: ArrayLike<number>) => rows.map((row) => column[row] ?? 0);
  return {
    segmentIds: Float64Array.from(pick(versions.segmentIds)),
    records: Uint32Array.from(pick(versions.records)),
    versionIds: Float64Array.from(pick(versions.versionIds)),
    born: Float64Array.from(pick(versions.born)),
    died: Float64Array.from(pick(versions.died)),
  };
}

async function existing<T>(found: Promise<T | undefined>): Promise<T> {
  const value = await found;
  if (value === undefined) throw missingIndex();
  return value;
}
