/** Where the indexes of this process are kept, and what becomes of damage there. */
import type { ClusterCatalog, SweptIndex } from '../../catalog/cluster-contract.ts';
import type { Catalog } from '../../catalog/contract.ts';
import type { ClusterEvents } from '../../index/cluster/cluster-events.ts';
import { createClusterStorage } from '../../index/cluster/cluster-storage.ts';
import type { IndexStorage, SearchPlans } from '../../index/contract.ts';
import type { NativeEngine } from '../../index/engine/native.ts';
import type { IndexSettings } from '../../index/index-settings.ts';
import { createIndexStore } from '../../index/index-store.ts';
import { Verification } from '../../index/segments/scrub.ts';
import type { BlobCache } from '../../index/storage/blob-cache.ts';
import type { BlobStore } from '../../index/storage/blob-store.ts';
import type { ObjectStore } from '../../index/storage/object-store.ts';
import type { SegmentCatalog } from '../../index/segments/segment-catalog.ts';
import type { FairQueue } from '../limits/fair-queue.ts';
import { readingWork } from '../limits/work.ts';
import { catalogSegments } from './catalog-segments.ts';
import { clusterSegments } from './cluster-segments.ts';
import { sweptAtOnce, wasteAges } from './waste-ages.ts';

/** What a node keeps its indexes with. */
export interface ClusterBlobs {
  readonly catalog: ClusterCatalog;
  readonly objects: ObjectStore;
  readonly cache: BlobCache;
  readonly nodeId: string;
  /** How long objects are kept that were replaced. */
  readonly replacedKeptMs: number;
  readonly events?: ClusterEvents;
}

export interface StorageOptions {
  readonly catalog: Catalog;
  readonly engine: NativeEngine;
  readonly blobs: BlobStore | ClusterBlobs;
  readonly exactTokenVectorsMax: number;
  readonly settings: IndexSettings;
  readonly scanQueue: FairQueue;
  readonly onBackgroundError: (job: string, error: unknown, indexId?: string) => void;
}

export interface ServiceStorage extends IndexStorage {
  readonly plans: Readonly<SearchPlans>;
  readonly verification: Readonly<Verification>;
  /** Free bytes where segments are written. */
  freeBytes(): Promise<number>;
  /** Resolves when the store that nodes share answers; absent when there is none. */
  ping?(): Promise<void>;
  /** As `UpkeepOptions.claimSweep`. */
  readonly claimSweep?: () => Promise<readonly SweptIndex[]>;
}

export function createStorage(options: StorageOptions): ServiceStorage {
  const { blobs } = options;
  return 'objects' in blobs ? clusterStorage(options, blobs) : localStorage(options, blobs);
}

/** Metadata of many documents is read in turn with the lists and counts of all tenants. */
function metadataInTurn(
  { catalog, scanQueue }: StorageOptions,
  indexId: string,
  tenantId = '',
): Pick<SegmentCatalog, 'readMetadata'> {
  return {
    readMetadata: (versionIds) => {
      const work = readingWork({ rows: versionIds.length, bytes: 0 });
      return scanQueue.run(tenantId, { work }, () => catalog.readMetadata(indexId, versionIds));
    },
  };
}

function localStorage(options: StorageOptions, blobs: BlobStore): ServiceStorage {
  const { catalog, engine, exactTokenVectorsMax, settings, onBackgroundError } = options;
  const store = createIndexStore({
    engine,
    blobs,
    exactTokenVectorsMax,
    settings,
    events: {
      onBackgroundError: (indexId, job, error) => onBackgroundError(job, error, indexId),
      onCorrupt(indexId, error) {
        onBackgroundError('damage', error, indexId);
        catalog
          .setIndexStatus(indexId, 'error')
          .catch((failure: unknown) => onBackgroundError('index status', failure, indexId));
      },
    },
  });
  return {
    plans: store.plans,
    verification: store.verification,
    open: (indexId, { dim, tenantId }) =>
      store.open({
        indexId,
        ...(dim === undefined ? {} : { dim }),
        catalog: { ...catalogSegments(catalog, indexId), ...metadataInTurn(options, indexId, tenantId) },
      }),
    removeIndex: (indexId) => store.removeIndex(indexId),
    storedIndexIds: () => store.storedIndexIds(),
    freeBytes: () => blobs.freeBytes(),
  };
}

/** Every object is compared with its checksum when it is fetched. */
function clusterStorage(options: StorageOptions, blobs: ClusterBlobs): ServiceStorage {
  const { engine, exactTokenVectorsMax, onBackgroundError } = options;
  const { catalog, cache, objects, nodeId, events } = blobs;
  const { wasteAgeMsMax, sweepAgeMs } = wasteAges(blobs.replacedKeptMs);
  const settings = {
    ...options.settings,
    wasteAgeMsMax: Math.min(options.settings.wasteAgeMsMax, wasteAgeMsMax),
  };
  const storage = createClusterStorage({
    engine,
    cache,
    objects,
    exactTokenVectorsMax,
    settings,
    catalogOf: (indexId, tenantId) => ({
      ...clusterSegments(catalog, indexId, nodeId, events),
      ...metadataInTurn(options, indexId, tenantId),
    }),
    ...(events === undefined ? {} : { events }),
    onBackgroundError: (indexId, job, error) => onBackgroundError(job, error, indexId),
  });
  return {
    ...storage,
    verification: new Verification(),
    freeBytes: () => cache.freeBytes(),
    ping: () => objects.ping(),
    claimSweep: () => catalog.claimSweep({ ageMs: sweepAgeMs, limit: sweptAtOnce }),
  };
}
