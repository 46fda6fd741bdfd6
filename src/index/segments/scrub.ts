/**
 * Compares the records, codes, postings and columns of sealed segments with their checksums, slowly in the background, one
 * segment after the other. It begins again when the last pass is `verifyAgeMsMax` old. A search checks each record besides,
 * when it first touches it. Reading records here does not push the pages that searches use out of the page cache.
 *
 * A record that was found damaged, or that a search could not read, is read a second time at once. The index counts as
 * damaged only if the second read finds damage, too, and somebody may still see the record.
 */
import { CopyPace } from '../merging/copy-pace.ts';
import { derivedEndings, segmentOfColumn } from './derived-data.ts';
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
  readonly engine: Pick<
    NativeEngine,
    'inspectSegment' | 'inspectCodes' | 'inspectPostings' | 'inspectColumn'
  >;
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

/** How a file of derived data is compared with its checksums, and what is done about damage. */
interface DerivedCheck {
  readonly inspect: (file: string) => Promise<{ readonly damage: string }>;
  readonly remedy: string;
  readonly mend: () => Promise<void> | void;
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
    const { engine, blobs, segments, counts } = this.#deps;
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
    await this.#verifyDerived(segment);
    return true;
  }

  async #verifyDerived(segment: Segment): Promise<void> {
    for (const file of await this.#deps.blobs.list(`${segment.blob}.`)) {
      const check = this.#checkOf(segment, file.name);
      if (check === undefined) continue;
      await this.#verifyFile(segment, file.name, check);
      await this.#pace.spend(file.bytes, 1, this.#stop.signal);
    }
  }

  /** `undefined` for a file that is being written. */
  #checkOf(segment: Segment, name: string): DerivedCheck | undefined {
    const { engine, native, blobs, onDamagedCodes, onDamagedPostings } = this.#deps;
    const { codes, postings } = derivedEndings;
    const remedy = 'it is being built again';
    if (name === segment.blob + codes) {
      const inspect = (file: string) => engine.inspectCodes(file, true);
      return { inspect, remedy, mend: () => onDamagedCodes(segment) };
    }
    if (name === segment.blob + postings) {
      const inspect = (file: string) => engine.inspectPostings(file, true);
      return { inspect, remedy, mend: () => onDamagedPostings(segment) };
    }
    if (segmentOfColumn(name) !== segment.blob) return undefined;
    return {
      inspect: (file) => engine.inspectColumn(file, true),
      remedy: 'it is removed',
      mend: async () => {
        native.dropValues(segment.id);
        await blobs.remove(name);
      },
    };
  }

  async #verifyFile(segment: Segment, name: string, { inspect, remedy, mend }: DerivedCheck): Promise<void> {
    const { blobs, segments, onError } = this.#deps;
    // A merge removes it with its segment, and a column also goes alone.
    const isThere = async (): Promise<boolean> =>
      (await blobs.list(name)).some((file) => file.name === name) && segments.get(segment.id) === segment;
    let damage;
    try {
      ({ damage } = await inspect(await blobs.open(name)));
    } catch (error) {
      if (!(await isThere())) return;
      if (hasEngineCode(error, 'io')) damage = 'cannot be read';
      else if (hasEngineCode(error, 'unsupported_version')) damage = 'is of another format';
      else throw error;
    }
    if (damage === '' || !(await isThere())) return;
    onError(new Error(`${name}: ${damage}; ${remedy}`));
    await mend();
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
