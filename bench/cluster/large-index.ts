/**
 * The time of the catalog when a node opens an index of many documents. Rows alone: no objects take part.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
import type { NamedSegment } from '../../src/contracts/index-state.ts';
import { commit, newTarget, rounded, type Target } from './target.ts';

interface LargeIndexReport {
  readonly documents: number;
  readonly open_ms: number;
  /** The longest time in which the node could do nothing else. */
  readonly open_stall_ms: number;
}

/** Documents of a commit, each with a segment of its own. */
const batch = 5_000;

export async function measureLargeIndex(
  catalog: ClusterCatalog,
  documents: number,
): Promise<LargeIndexReport> {
  const filled = await newTarget(catalog);
  for (let stored = 0; stored < documents; stored += batch) {
    const segment = await newSegment(catalog, filled, batch);
    await commit(catalog, { ...filled, segmentId: segment.id, record: 0 }, batch, [segment]);
  }
  const { indexId } = filled;
  const opened = await stalling(async () =>
    existing(await catalog.changesSince({ indexId, generation: -1, segmentIds: [] })),
  );
  return {
    documents: opened.result.versions.versionIds.length,
    open_ms: rounded(opened.ms),
    open_stall_ms: rounded(opened.stallMs),
  };
}

async function newSegment(
  catalog: ClusterCatalog,
  { indexId }: Target,
  records: number,
): Promise<NamedSegment> {
  const [id = 0] = await catalog.allocateIds(1);
  const blob = `${indexId}/${id}`;
  await catalog.createSegment({ id, indexId, blob });
  return { id, blob, records, files: [{ ending: '', bytes: 1, sha256: '0'.repeat(64) }] };
}

async function stalling<T>(work: () => Promise<T>) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const start = performance.now();
  const result = await work();
  const ms = performance.now() - start;
  // A timer after the last stall records it.
  await pause(5);
  delay.disable();
  return { result, ms, stallMs: delay.max / 1e6 };
}

function existing<T>(found: T | 'reopen' | undefined): T {
  if (found === undefined || found === 'reopen') throw new Error('the index is gone');
  return found;
}
