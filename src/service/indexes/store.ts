/** Makes the index store of this process, and marks an index in the catalog when it is found damaged. */
import type { ClusterCatalog, SweptIndex } from '../../catalog/cluster-contract.ts';
import type { Catalog } from '../../catalog/contract.ts';
import type { ClusterEvents } from '../../index/cluster/cluster-events.ts';
import { createClusterStore } from '../../index/cluster/cluster-store.ts';
import type { IndexStore } from '../../index/contract.ts';
import type { BreadthMove } from '../../index/recall/index-recall.ts';
import { createLocalStore, type StoreDeps } from '../../index/local-store.ts';
import type { BlobCache } from '../../index/storage/blob-cache.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import type { ObjectStore } from '../../index/storage/object-store.ts';
import type { IndexCatalog } from '../../index/catalog.ts';
import { partCharactersMax } from '../../index/segments/metadata-parts.ts';
import type { FairQueue } from '../limits/fair-queue.ts';
import { readingWork } from '../limits/work.ts';
import { ownSegments, sharedSegments } from './catalog-segments.ts';
import { sweptAtOnce, wasteAges } from './waste-ages.ts';

export interface ClusterBlobs {
  readonly catalog: ClusterCatalog;
  readonly objects: ObjectStore;
  readonly cache: BlobCache;
  readonly nodeId: string;
  readonly replacedKeptMs: number;
  readonly events?: ClusterEvents;
  /** Whether nodes of an earlier release live. */
  readonly earlierNodes?: () => boolean;
}

export interface IndexStoreDeps extends Omit<StoreDeps<never>, 'catalogOf'> {
  readonly catalog: Catalog;
  readonly blobs: BlobStore | ClusterBlobs;
  readonly scanQueue: FairQueue;
  readonly onBreadth?: (indexId: string, move: BreadthMove) => void;
  readonly onBackgroundError: (job: string, error: unknown, indexId?: string) => void;
}

export function createIndexStore(deps: IndexStoreDeps): IndexStore {
  const { blobs } = deps;
  return 'objects' in blobs ? clusterStore(deps, blobs) : localStore(deps, blobs);
}

/** Reads metadata of many documents in turn with the lists and counts of all tenants. */
function metadataInTurn(
  { catalog, scanQueue }: IndexStoreDeps,
  indexId: string,
  tenantId = '',
): Pick<IndexCatalog, 'readMetadata'> {
  return {
    readMetadata: (versionIds) => {
      const work = readingWork({ rows: versionIds.length, bytes: partCharactersMax });
      return scanQueue.run(tenantId, { work }, () => catalog.readMetadata(indexId, versionIds));
    },
  };
}

function localStore(deps: IndexStoreDeps, blobs: BlobStore): IndexStore {
  const { catalog, onBackgroundError, onBreadth } = deps;
  return createLocalStore({
    ...deps,
    blobs,
    catalogOf: (indexId, tenantId) => ({
      ...ownSegments(catalog, indexId),
      ...metadataInTurn(deps, indexId, tenantId),
    }),
    events: {
      onBackgroundError: (indexId, job, error) => onBackgroundError(job, error, indexId),
      ...(onBreadth && { onBreadth }),
      onCorrupt(indexId, error) {
        onBackgroundError('damage', error, indexId);
        catalog
          .setIndexStatus(indexId, 'error')
          .catch((failure: unknown) => onBackgroundError('index status', failure, indexId));
      },
    },
  });
}

function clusterStore(deps: IndexStoreDeps, blobs: ClusterBlobs): IndexStore {
  const { catalog, nodeId, events } = blobs;
  const { wasteAgeMsMax } = wasteAges(blobs.replacedKeptMs);
  return createClusterStore({
    ...deps,
    ...blobs,
    settings: { ...deps.settings, wasteAgeMsMax: Math.min(deps.settings.wasteAgeMsMax, wasteAgeMsMax) },
    catalogOf: (indexId, tenantId) => ({
      ...sharedSegments(catalog, indexId, nodeId, events),
      ...metadataInTurn(deps, indexId, tenantId),
    }),
    onBackgroundError: (indexId, job, error) => deps.onBackgroundError(job, error, indexId),
  });
}

export function claimSweep({ catalog, replacedKeptMs }: ClusterBlobs): Promise<readonly SweptIndex[]> {
  return catalog.claimSweep({ ageMs: wasteAges(replacedKeptMs).sweepAgeMs, limit: sweptAtOnce });
}
