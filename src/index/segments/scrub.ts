/**
 * Compares the records, codes and postings of sealed segments with their checksums, slowly in the background, one segment
 * after the other. It begins again when the last pass is `verifyAgeMsMax` old. A search checks each record besides, when it
 * first touches it. Reading records here does not push the pages that searches use out of the page cache.
 *
 * A record that was found damaged, or that a search could not read, is read a second time at once. The index counts as
 * damaged only if the second read finds damage, too, and somebody may still see the record.
 */
import { CopyPace } from '../merging/copy-pace.ts';
import { derivedEndings } from './derived-data.ts';
import { hasEngineCode, type UnreadRecord } from '../engine/engine-errors.ts';
import { SharedRuns } from '../../shared-runs.ts';
import { withCode } from '../../system-errors.ts';
import type { NativeEngine } from '../engine/native.ts';
import type { Segment, SegmentDeps } from './segment.ts';

/** Counts the verified records of all indexes since the process started. */
export class Verification {
  recordsVerified = 0;
  recordsDamaged = 0;
}

export interface ScrubDeps extends SegmentDeps {
  readonly engine: Pick<NativeEngine, 'inspectSegment' | 'inspectCodes' | 'inspectPostings'>;
  readonly counts: Verification;
  readonly pinnedGeneration: () => number;
  /** Called when two reads have found a referenced record, or a whole segment, damaged. */
  readonly onCorrupt: (error: Error) => void;
  /** Builds the codes again. Until then they may choose the wrong chunks, but cause no wrong score. */
  readonly onDamagedCodes: (segment: Segment) => void;
  /** Builds the postings again. Until then filters read records where they meet the damage. */
  readonly onDamagedPostings: (segment: Segment) => void;
  readonly onError: (error: unknown) => void;
}

const batchBytes = 16 * 1024 * 1024;

export class Scrub {
  readonly #deps: ScrubDeps;
  readonly #pace: CopyPace;
  readonly #verifiedAtMs = new Map<number, number>();
  readonly #passes = new SharedRuns();
  readonly #secondReads = new SharedRuns<boolean>();
  readonly #stop = new AbortController();

  constructor(deps: ScrubDeps) {
    this.#deps = deps;
    this.#pace = new CopyPace(deps.settings.verifyBytesPerSecond);
  }

  /** Makes one pass over the segments that are due. Callers share a pass. Never rejects. */
  run(): Promise<void> {
    return this.#passes.run(() => this.#pass().catch((error: unknown) => this.#report(error)));
  }

  /**
   * Reads a record again that was found damaged or could not be read. Resolves to false if the record could not be read this
   * time either. Never rejects.
   */
  verifyRecord(unread: UnreadRecord): Promise<boolean> {
    const verify = (): Promise<boolean> =>
      this.#verifyRecord(unread).catch((error: unknown) => {
        this.#report(error);
        return false;
      });
    return this.#secondReads.run(verify, `${unread.segmentId} ${unread.record}`);
  }

  stop(): void {
    this.#stop.abort();
  }

  #report(error: unknown): void {
    if (!this.#stop.signal.aborted) this.#deps.onError(error);
  }

  async #pass(): Promise<void> {
    const { segments, settings } = this.#deps;
    const { nowMs, verifyAgeMsMax } = settings;
    for (const id of this.#verifiedAtMs.keys()) if (!segments.has(id)) this.#verifiedAtMs.delete(id);
    for (const segment of segments.values()) {
      const verifiedAtMs = this.#verifiedAtMs.get(segment.id) ?? Number.NEGATIVE_INFINITY;
      if (segment.state !== 'sealed' || nowMs() - verifiedAtMs < verifyAgeMsMax) continue;
      if (await this.#verify(segment)) this.#verifiedAtMs.set(segment.id, nowMs());
      if (this.#stop.signal.aborted) return;
    }
  }

  /** Returns whether the pass came to the end of the segment. */
  async #verify(segment: Segment): Promise<boolean> {
    const { engine, blobs, segments, counts, onDamagedCodes, onDamagedPostings } = this.#deps;
    for (let firstRecord = 0; ;) {
      if (this.#stop.signal.aborted || segments.get(segment.id) !== segment) return false;
      let found;
      try {
        found = await engine.inspectSegment(await blobs.open(segment.blob), {
          recordsReferenced: 0,
          firstRecord,
          verifyBytesMax: batchBytes,
        });
      } catch (error) {
        // A merge has removed it meanwhile.
        if (segments.get(segment.id) !== segment) return false;
        if (!hasEngineCode(error, 'corrupt')) throw error;
      }
      if (found?.state !== 'sealed') return await this.verifyRecord({ segmentId: segment.id, record: 0 });
      counts.recordsVerified += found.recordsVerified;
      counts.recordsDamaged += found.damaged.length;
      for (const { record } of found.damaged) {
        if (!(await this.verifyRecord({ segmentId: segment.id, record }))) return false;
      }
      firstRecord += found.recordsVerified;
      if (firstRecord >= found.records) break;
      await this.#pace.spend(batchBytes, 1, this.#stop.signal);
    }
    const { codes, postings } = derivedEndings;
    await this.#verifyDerived(segment, codes, (file) => engine.inspectCodes(file, true), onDamagedCodes);
    await this.#verifyDerived(
      segment,
      postings,
      (file) => engine.inspectPostings(file, true),
      onDamagedPostings,
    );
    return true;
  }

  async #verifyDerived(
    segment: Segment,
    ending: string,
    inspect: (file: string) => Promise<{ readonly damage: string }>,
    onDamaged: (segment: Segment) => void,
  ): Promise<void> {
    const { blobs, segments, onError } = this.#deps;
    // The list also holds a temporary file of a build that is going on.
    const derived = (await blobs.list(segment.blob + ending)).find(
      ({ name }) => name === segment.blob + ending,
    );
    if (derived === undefined) return;
    try {
      const file = await blobs.open(derived.name);
      const { damage } = await inspect(file).catch((error: unknown) => {
        if (!hasEngineCode(error, 'io')) throw error;
        return { damage: 'cannot be read' };
      });
      if (damage !== '' && segments.get(segment.id) === segment) {
        onError(new Error(`${derived.name}: ${damage}; it is being built again`));
        onDamaged(segment);
      }
    } catch (error) {
      // A merge has removed it meanwhile.
      if (segments.get(segment.id) === segment) throw error;
    }
    await this.#pace.spend(derived.bytes, 1, this.#stop.signal);
  }

  async #verifyRecord({ segmentId, record }: UnreadRecord): Promise<boolean> {
    const { native, segments, pinnedGeneration, onCorrupt, onError } = this.#deps;
    const segment = segments.get(segmentId);
    if (segment === undefined) return true;
    let found;
    try {
      found = await native.verifyRecord(segmentId, record);
    } catch (error) {
      // A merge has removed it meanwhile.
      if (segments.get(segmentId) !== segment) return true;
      throw error;
    }
    if (found.damage === '' || segments.get(segmentId) !== segment) return true;
    const isSeen = () => native.recordsSeenSince(segmentId, pinnedGeneration()).records.includes(record);
    if (found.wholeSegment || isSeen()) {
      onCorrupt(withCode('corrupt', found.damage));
    } else {
      onError(new Error(`${found.damage}; no search can see it any more`));
    }
    return true;
  }
}
