/**
 * Merges of an index in a directory of this process. SQLite finds a version at its new place as soon as it is noted there, while
 * memory keeps it in its source until the end. So a commit that comes meanwhile translates places, and commits wait for the
 * last transaction.
 */
import type { NamedSegment, RecordLocation } from '../../contracts/index-state.ts';
import { assertInvariant } from '../../errors.ts';
import type { DerivedData } from '../segments/derived-data.ts';
import type { ValueLoader } from '../segments/value-loader.ts';
import { segmentBlob, type Segment, type SegmentDeps } from '../segments/segment.ts';
import type { SegmentWriter } from '../segments/segment-writer.ts';
import { assertSpace, removeBlobs } from '../storage/blob-store.ts';
import type { Merge } from './merge.ts';
import type { MergeHost, MergeSource, MergeTarget } from './merge-host.ts';
import { planMerge } from './merge-policy.ts';

export interface DirectoryMergesDeps extends SegmentDeps {
  readonly writer: SegmentWriter;
  readonly derived: DerivedData;
  readonly values: Pick<ValueLoader, 'copy'>;
  /** Resolves when the index is closed. */
  readonly closed: Promise<void>;
  readonly pinnedGeneration: () => number;
  /** Runs work while no commit runs. */
  readonly exclusive: (work: () => Promise<void>) => Promise<void>;
  /** Called in the turn of the event loop in which records move. */
  readonly onMoved: () => void;
  readonly onMerged: () => void;
  /** It is unknown what the catalog holds: the index must be opened again. */
  readonly onUncertain: (error: unknown) => void;
}

export class DirectoryMerges implements MergeHost {
  readonly #deps: DirectoryMergesDeps;

  constructor(deps: DirectoryMergesDeps) {
    this.#deps = deps;
  }

  segments(): ReadonlyMap<number, Segment> {
    return new Map([...this.#deps.segments].filter(([, segment]) => isMovable(segment)));
  }

  pinnedGeneration(): number {
    return this.#deps.pinnedGeneration();
  }

  async lookAround(): Promise<void> {}

  due(segments: readonly MergeSource[]): readonly number[] {
    return planMerge(segments, this.#deps.settings)?.segmentIds ?? [];
  }

  assertSpace(bytes: number): Promise<void> {
    return assertSpace(this.#deps.blobs, bytes, 'a merge');
  }

  async createTarget(): Promise<MergeTarget> {
    const { writer, settings } = this.#deps;
    const target = await writer.create();
    // No upsert appends to it. After a crash or a failure it holds nothing but waste.
    target.state = 'retired';
    target.sealing = true;
    target.wasteSinceMs = settings.nowMs();
    return target;
  }

  async finish({ id }: MergeTarget): Promise<NamedSegment> {
    const { native, blobs, catalog, derived, values, segments, closed } = this.#deps;
    const target = segments.get(id);
    assertInvariant(target !== undefined, 'the target of a merge is open');
    await native.sync(id);
    const { records, tokenVectors } = await native.seal(id);
    await blobs.seal(target.blob);
    await catalog.sealSegment(id, records);
    target.state = 'sealed';
    target.sealing = false;
    target.tokenVectors = tokenVectors;
    await Promise.race([derived.build(target).then(() => values.copy(target)), closed]);
    return { id, blob: target.blob, records, files: [] };
  }

  changeOver({ copied, sourceIds, target }: Merge, swap: () => Promise<void>): Promise<void> {
    const { exclusive, native, segments, onMoved } = this.#deps;
    return exclusive(async () => {
      await swap();
      // The sources have noted the versions that died while the merge ran. None dies while this runs.
      for (const { sourceId, records, first } of copied) {
        native.copyLifespans(sourceId, records, target?.id ?? 0, first);
      }
      for (const id of sourceIds) {
        native.dropSegment(id);
        segments.delete(id);
      }
      onMoved();
    });
  }

  async ended(merge: Merge, outcome: 'merged' | 'given up' | 'uncertain', error?: unknown): Promise<void> {
    if (outcome === 'uncertain') return this.#deps.onUncertain(error);
    if (outcome === 'given up') return await this.#dropTarget(merge);
    const { indexId, blobs, onMerged } = this.#deps;
    for (const id of merge.sourceIds) await removeBlobs(blobs, segmentBlob(indexId, id));
    onMerged();
  }

  /** Translates a place in the target, which a commit found in the catalog, into the source where memory keeps the record. */
  locate({ copied, target }: Merge, location: RecordLocation): RecordLocation {
    if (location.segmentId !== target?.id) return location;
    const from = copied.findLast(({ first }) => first <= location.record);
    const record = from?.records[location.record - from.first];
    assertInvariant(from !== undefined && record !== undefined, 'every record of the target was copied');
    return this.#deps.segments.has(from.sourceId) ? { segmentId: from.sourceId, record } : location;
  }

  async #dropTarget({ held, target: given }: Merge): Promise<void> {
    const { native, segments, blobs } = this.#deps;
    const target = segments.get(given?.id ?? 0);
    if (target === undefined) return;
    // It holds nothing but waste. If it cannot be removed now, a later merge takes it as a source.
    target.unwritable = true;
    await held.turn.swap({ removedSegmentIds: [target.id] });
    native.dropSegment(target.id);
    segments.delete(target.id);
    await removeBlobs(blobs, target.blob);
  }
}

function isMovable(segment: Segment): boolean {
  return (
    segment.state === 'sealed' || (segment.state === 'retired' && segment.unwritable && segment.writers === 0)
  );
}
