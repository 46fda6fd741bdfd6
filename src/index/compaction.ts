/**
 * Space comes back by copying what is still needed of wasteful segments into a new one. A segment is due
 * when more than a fifth of its records is waste, or when its oldest waste has reached the age at which
 * deleted data must be physically gone.
 *
 * Crash-safe at every step: until the swap (one transaction of the ledger) nothing refers to the new
 * segment, after it nothing refers to the old ones; whichever nobody refers to is found and removed by a
 * later compaction or the next open. Searches never wait: those that began on the old segments keep them
 * mapped. Commits wait for the swap alone.
 */
import { assertInvariant } from '../errors.ts';
import type { BlobStore } from './blob-store.ts';
import { removeBlobs } from './blob-removal.ts';
import type { NativeIndex, SegmentInfo } from './native.ts';
import type { SegmentLedger } from './segment-ledger.ts';
import type { VersionSpan } from './segment-lives.ts';
import type { SegmentWriter } from './segment-writer.ts';
import type { Segment } from './segment.ts';

export interface CompactionParts {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly ledger: SegmentLedger;
  readonly segments: Map<number, Segment>;
  readonly writer: SegmentWriter;
  readonly settings: {
    readonly segmentTokenVectorsMax: number;
    readonly graphTokenVectorsMin: number;
    readonly wasteAgeMsMax: number;
    readonly nowMs: () => number;
  };
  /** The oldest generation a reader looks at. */
  readonly pinnedGeneration: () => number;
  /** Runs work while no commit is under way. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
  /** Called in the turn of the event loop in which records have moved. */
  readonly onMoved: () => void;
}

export interface CompactionOutcome {
  readonly compacted: readonly number[];
  /** Why it is unknown whether the swap happened. */
  readonly uncertain?: unknown;
}

const wasteShareMax = 0.2;
/** Below this much waste only age makes a segment due: rewriting tiny files for a few records is not worth it. */
const wasteBytesMin = 4 * 1024 * 1024;
const copyRecordsMax = 512;

interface Source {
  readonly segment: Segment;
  readonly info: SegmentInfo;
}

interface Move {
  readonly versionId: number;
  /** Record number in the target. */
  readonly to: number;
}

/** Compacts what is due, if anything. */
export async function compact(parts: CompactionParts): Promise<CompactionOutcome> {
  const sources = chooseSources(parts);
  if (sources.length === 0) return { compacted: [] };
  const target = sources.some(({ segment }) => segment.lives.live > 0)
    ? await parts.writer.create()
    : undefined;
  // Never appended to by upserts, and a crash or a failure from here leaves a segment of waste only.
  if (target !== undefined) {
    target.state = 'retired';
    target.lives.markWaste(parts.settings.nowMs());
  }
  const moves = target === undefined ? [] : await copyOrAbandon(parts, target, sources);
  const swapped = await parts.exclusive(() => swap(parts, target, sources, moves));
  if (swapped.uncertain !== undefined) return { compacted: [], uncertain: swapped.uncertain };
  for (const { segment } of sources) await removeBlobs(parts.blobs, segment.blob);
  return { compacted: sources.map(({ segment }) => segment.id) };
}

/** Waste in the active segment can only go once it takes no more records: to be called before `compact`. */
export function retireWastefulActive(parts: CompactionParts): void {
  for (const info of parts.native.segments()) {
    const segment = parts.segments.get(info.segmentId);
    if (segment?.state !== 'active') continue;
    // What upserts in flight have written is not waste yet; old waste is not theirs.
    const due = segment.writers === 0 ? isDue(parts, segment, info) : isWasteOld(parts, segment);
    if (due) parts.writer.retire(segment);
  }
}

/** Due segments, as many as one target holds. */
function chooseSources(parts: CompactionParts): Source[] {
  const sources: Source[] = [];
  let tokenVectors = 0;
  for (const info of parts.native.segments()) {
    const segment = parts.segments.get(info.segmentId);
    if (segment === undefined || !isMovable(segment) || !isDue(parts, segment, info)) continue;
    tokenVectors += info.records === 0 ? 0 : (info.tokenVectors * segment.lives.live) / info.records;
    if (sources.length > 0 && tokenVectors > parts.settings.segmentTokenVectorsMax) break;
    sources.push({ segment, info });
  }
  return sources;
}

function isMovable(segment: Segment): boolean {
  return (
    segment.state === 'sealed' || (segment.state === 'retired' && segment.poisoned && segment.writers === 0)
  );
}

function isDue(parts: CompactionParts, segment: Segment, info: SegmentInfo): boolean {
  if (segment.poisoned) return true;
  const waste = info.records - segment.lives.live;
  if (waste === 0) return false;
  const wasteShare = waste / info.records;
  if (wasteShare > wasteShareMax && wasteShare * info.fileBytes >= wasteBytesMin) return true;
  return isWasteOld(parts, segment);
}

function isWasteOld(parts: CompactionParts, segment: Segment): boolean {
  const since = segment.lives.wasteSinceMs;
  return since !== undefined && parts.settings.nowMs() - since >= parts.settings.wasteAgeMsMax;
}

async function copyOrAbandon(
  parts: CompactionParts,
  target: Segment,
  sources: readonly Source[],
): Promise<readonly Move[]> {
  try {
    return await copyInto(parts, target, sources);
  } catch (error) {
    // Holds nothing but waste. Should it not even go now, the next run takes it as a source.
    target.poisoned = true;
    await parts.ledger.swapSegments({ removedSegmentIds: [target.id], moves: [] });
    await drop(parts, target);
    throw error;
  }
}

/** Takes a segment that the ledger does not name any more out of the engine, and removes its files. */
async function drop(parts: CompactionParts, segment: Segment): Promise<void> {
  parts.native.dropSegment(segment.id);
  parts.segments.delete(segment.id);
  await removeBlobs(parts.blobs, segment.blob);
}

/** Copies everything a reader may still see, then makes the target durable and immutable. */
async function copyInto(
  parts: CompactionParts,
  target: Segment,
  sources: readonly Source[],
): Promise<readonly Move[]> {
  const moves: Move[] = [];
  for (const { segment } of sources) {
    const spans = segment.lives.seenSince(parts.pinnedGeneration());
    for (let first = 0; first < spans.length; first += copyRecordsMax) {
      const batch = spans.slice(first, first + copyRecordsMax);
      const copied = await parts.native.copyRecords(
        segment.id,
        Uint32Array.from(batch, (span) => span.record),
        target.id,
      );
      for (const [index, { versionId }] of batch.entries()) {
        const to = copied[index];
        assertInvariant(to !== undefined, 'every copied record has a new number');
        moves.push({ versionId, to });
      }
    }
  }
  await parts.native.sync(target.id);
  const info = await parts.native.seal(target.id);
  await parts.blobs.seal(target.blob);
  await parts.ledger.sealSegment(target.id, info.records);
  target.state = 'sealed';
  target.tokenVectors = info.tokenVectors;
  if (info.tokenVectors >= parts.settings.graphTokenVectorsMin) await parts.native.buildGraph(target.id);
  return moves;
}

/** The point of no return: ledger first, then memory in one turn of the event loop. */
async function swap(
  parts: CompactionParts,
  target: Segment | undefined,
  sources: readonly Source[],
  moves: readonly Move[],
): Promise<{ readonly uncertain?: unknown }> {
  // Commits are shut out: what died while the copy ran is noted, and nothing dies until the end.
  const pinned = parts.pinnedGeneration();
  const final = new Map<number, VersionSpan>();
  for (const { segment } of sources) {
    for (const span of segment.lives.seenSince(pinned)) final.set(span.versionId, span);
  }
  const kept = moves.flatMap((move) => {
    const span = final.get(move.versionId);
    return span === undefined ? [] : [{ ...span, to: move.to }];
  });
  try {
    await parts.ledger.swapSegments({
      removedSegmentIds: sources.map(({ segment }) => segment.id),
      moves: kept.map(({ versionId, to }) => ({ versionId, to: { segmentId: target?.id ?? 0, record: to } })),
    });
  } catch (error) {
    return { uncertain: error };
  }
  if (target !== undefined) {
    for (const { to, versionId, born, died } of kept) target.lives.add({ record: to, versionId, born, died });
    parts.native.loadLives({
      segmentIds: new Float64Array(kept.length).fill(target.id),
      records: Uint32Array.from(kept, ({ to }) => to),
      versionIds: Float64Array.from(kept, ({ versionId }) => versionId),
      born: Float64Array.from(kept, ({ born }) => born),
      died: Float64Array.from(kept, ({ died }) => died),
    });
  }
  for (const { segment } of sources) {
    parts.native.dropSegment(segment.id);
    parts.segments.delete(segment.id);
  }
  parts.onMoved();
  return {};
}
