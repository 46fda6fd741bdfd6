/**
 * What an index of many documents costs the catalog that nodes share: what a node asks that opens it, and the end of a
 * merge of all of it, while somebody goes on writing. Rows alone: no objects take part.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterCatalog } from '../../src/catalog/cluster-contract.ts';
import type { NamedSegment } from '../../src/index-state.ts';
import { median } from '../lib/statistics.ts';
import { commit, newTarget, rounded, type Target } from './target.ts';

interface LargeIndexReport {
  readonly documents: number;
  readonly open_ms: number;
  /** The longest time in which the node could do nothing else. */
  readonly open_stall_ms: number;
  readonly merge_ms: number;
  readonly merge_stall_ms: number;
  /** Commits of one document into the index meanwhile. */
  readonly commits_meanwhile: { readonly p50_ms: number; readonly slowest_ms: number };
}

/** Documents of a commit, each with a segment of its own. */
const batch = 5_000;
const leaseMs = 600_000;

export async function measureLargeIndex(
  catalog: ClusterCatalog,
  documents: number,
): Promise<LargeIndexReport> {
  const filled = await newTarget(catalog);
  const segments: NamedSegment[] = [];
  for (let stored = 0; stored < documents; stored += batch) {
    const segment = await newSegment(catalog, filled, batch);
    await commit(catalog, { ...filled, segmentId: segment.id, record: 0 }, batch, { segments: [segment] });
    segments.push(segment);
  }
  const { indexId } = filled;
  const opened = await stalling(async () =>
    existing(await catalog.changesSince({ indexId, generation: -1, segmentIds: [] })),
  );
  const { versionIds } = opened.result.versions;
  const lease = existing(await catalog.acquireMergeLease(indexId, 'bench', leaseMs));
  const target = await newSegment(catalog, filled, versionIds.length);
  const writing = { goesOn: true };
  const times = writeMeanwhile(catalog, filled, writing);
  const merged = await stalling(() =>
    catalog.swapMerged({
      lease,
      removedSegmentIds: segments.map(({ id }) => id),
      target,
      moves: { versionIds, records: Uint32Array.from(versionIds.keys()) },
    }),
  );
  writing.goesOn = false;
  const commits = await times;
  if (!merged.result) throw new Error('the turn to merge was lost');
  return {
    documents: versionIds.length,
    open_ms: rounded(opened.ms),
    open_stall_ms: rounded(opened.stallMs),
    merge_ms: rounded(merged.ms),
    merge_stall_ms: rounded(merged.stallMs),
    commits_meanwhile: { p50_ms: rounded(median(commits)), slowest_ms: rounded(Math.max(...commits)) },
  };
}

/** Returns the times of the commits, milliseconds. */
async function writeMeanwhile(
  catalog: ClusterCatalog,
  target: Target,
  writing: { readonly goesOn: boolean },
): Promise<readonly number[]> {
  const times: number[] = [];
  while (writing.goesOn) {
    const segment = await newSegment(catalog, target, 1);
    const start = performance.now();
    await commit(catalog, { ...target, segmentId: segment.id, record: 0 }, 1, { segments: [segment] });
    times.push(performance.now() - start);
    await pause(20);
  }
  return times;
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
  // The last stall is seen by a timer after it.
  await pause(5);
  delay.disable();
  return { result, ms, stallMs: delay.max / 1e6 };
}

function existing<T>(found: T | 'reopen' | undefined): T {
  if (found === undefined || found === 'reopen') throw new Error('the index is gone');
  return found;
}
