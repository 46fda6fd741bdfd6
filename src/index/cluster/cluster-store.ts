/** Opens the indexes of a node from the catalog and the object store, with copies in the node's cache. */
import type { RowShape } from '../../contracts/row-shape.ts';
import { noRepeats } from '../ask-again.ts';
import type { IndexStore, SearchPlans } from '../contract.ts';
import { fromEngine } from '../engine/engine-errors.ts';
import { createNative, measuringOf, shapeOfSegment, otherModel, type StoreDeps } from '../local-store.ts';
import type { BreadthMove } from '../recall/index-recall.ts';
import { CopyPace } from '../merging/copy-pace.ts';
import { Verification } from '../segments/scrub.ts';
import type { BlobCache } from '../storage/blob-cache.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { SharedIndexCatalog } from '../catalog.ts';
import type { ClusterEvents } from './cluster-events.ts';
import { ClusterIndex, type ClusterIndexDeps } from './cluster-index.ts';
import { fetchSegment } from './segment-objects.ts';

export interface ClusterStoreDeps
  extends StoreDeps<SharedIndexCatalog>, Pick<ClusterIndexDeps, 'earlierNodes'> {
  readonly cache: BlobCache;
  readonly objects: ObjectStore;
  readonly events?: ClusterEvents;
  readonly onBackgroundError: (indexId: string, job: string, error: unknown) => void;
  readonly onBreadth?: (indexId: string, move: BreadthMove) => void;
}

export function createClusterStore(deps: ClusterStoreDeps): IndexStore {
  const { cache, objects, settings } = deps;
  const plans: SearchPlans = { exact: 0, codes: 0, lists: 0, graph: 0, device: 0 };
  const repeats = noRepeats();
  const measuring = measuringOf(deps);
  const pace = new CopyPace(settings.copyBytesPerSecond);
  return {
    plans,
    repeats,
    // This counts records, and no node verifies those in the background: a segment is compared with its checksum when it is fetched.
    verification: new Verification(),
    async open(indexId, { shape: ofModel, tenantId }) {
      const catalog = deps.catalogOf(indexId, tenantId);
      const shape = ofModel ?? (await shapeOf(deps, catalog));
      try {
        const native = createNative(deps, repeats, { shape, tenantId });
        const own = { indexId, shape, native, catalog };
        return new ClusterIndex({ ...deps, ...own, pace, plans, repeats, measuring });
      } catch (error) {
        throw fromEngine(error);
      }
    },
    removeIndex: (indexId) => cache.removeIndex(indexId),
    storedIndexIds: () => cache.indexIds(),
    freeBytes: () => cache.freeBytes(),
    ping: () => objects.ping(),
  };
}

async function shapeOf(
  { engine, cache }: ClusterStoreDeps,
  catalog: Pick<SharedIndexCatalog, 'changesSince'>,
): Promise<RowShape> {
  const changes = await catalog.changesSince({ generation: -1, segmentIds: [] });
  const first = changes === 'reopen' ? undefined : changes.segments[0];
  if (first === undefined) throw otherModel();
  return await shapeOfSegment(engine, await fetchSegment(cache, first));
}
