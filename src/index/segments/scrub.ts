/**
 * Holds the records, codes and postings of sealed segments against their checksums in the background, besides the check
 * that each record gets when a search first touches it: slowly, one segment after the other, each again after a
 * while. Of the records, what it reads does not push out of the page cache what searches use.
 *
 * A record that it finds damaged, or that a search could not read, is read a second time at once. The index is damaged
 * only if that finds damage, too, and if somebody may still see the record.
 */
import type { BlobStore } from '../storage/blob-store.ts';
import { CopyPace } from './copy-pace.ts';
import { derivedEndings } from './derived-data.ts';
import { hasEngineCode, type UnreadRecord } from '../engine/engine-errors.ts';
import type { NativeEngine, NativeIndex } from '../engine/native.ts';
import type { Segment } from './segment.ts';

/** Counts the verified records of all indexes since the process started. */
export class Verification {
  recordsVerified = 0;
  recordsDamaged = 0;
}

export interface ScrubDeps {
  readonly engine: Pick<NativeEngine, 'inspectSegment' | 'inspectCodes' | 'inspectPostings'>;
  readonly native: Pick<NativeIndex, 'verifyRecord' | 'recordsSeenSince'>;
  readonly blobs: BlobStore;
  readonly segments: ReadonlyMap<number, Segment>;
  readonly counts: Verification;
  readonly bytesPerSecond: number;
  /** A segment is verified again at this age. */
  readonly ageMsMax: number;
  readonly nowMs: () => number;
  readonly pinnedGeneration: () => number;
  /** A record that is referenced, or a whole segment, is damaged: two reads have found it so. */
  readonly onCorrupt: (error: Error) => void;
  /** They are to be built anew: until then they may hand on the wrong chunks, but no wrong score. */
  readonly onDamagedCodes: (segment: Segment) => void;
  /** They are to be built anew: until then filters read the records where they meet the damage. */
  readonly onDamagedPostings: (segment: Segment) => void;
  readonly onError: (error: unknown) => void;
}

const batchBytes = 16 * 1024 * 1024;

export class Scrub {
  readonly #deps: ScrubDeps;
  readonly #pace: CopyPace;
  readonly #verifiedAtMs = new Map<number, number>();
  #running: Promise<void> | undefined;
  readonly #second = new Map<string, Promise<boolean>>();
  readonly #stop = new AbortController();

  constructor(deps: ScrubDeps) {
    this.#deps = deps;
    this.#pace = new CopyPace(deps.bytesPerSecond);
  }

  /** One pass over what is due; joins one under way. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#pass()
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.onError(error);
      })
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  /** Reads a record again that was found damaged or could not be read; false if that tells nothing. Never rejects. */
  verifyRecord(unread: UnreadRecord): Promise<boolean> {
    const key = `${unread.segmentId} ${unread.record}`;
    const running = this.#second.get(key);
    if (running !== undefined) return running;
    const verifying = this.#verifyRecord(unread)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.onError(error);
        return false;
      })
      .finally(() => this.#second.delete(key));
    this.#second.set(key, verifying);
    return verifying;
  }

  stop(): void {
    this.#stop.abort();
  }

  async #pass(): Promise<void> {
    const { segments, nowMs, ageMsMax } = this.#deps;
    for (const id of this.#verifiedAtMs.keys()) if (!segments.has(id)) this.#verifiedAtMs.delete(id);
    for (const segment of segments.values()) {
      const verifiedAtMs = this.#verifiedAtMs.get(segment.id) ?? Number.NEGATIVE_INFINITY;
      if (segment.state !== 'sealed' || nowMs() - verifiedAtMs < ageMsMax) continue;
      if (await this.#verify(segment)) this.#verifiedAtMs.set(segment.id, nowMs());
      if (this.#stop.signal.aborted) return;
    }
  }

  /** Whether the pass came to the segment's end. */
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
        // Merged away meanwhile.
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
    // The list holds what is being written beside it, too.
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
        onError(new Error(`${derived.name}: ${damage}; built anew`));
        onDamaged(segment);
      }
    } catch (error) {
      // Merged away meanwhile.
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
      // Merged away meanwhile.
      if (segments.get(segmentId) !== segment) return true;
      throw error;
    }
    if (found.damage === '' || segments.get(segmentId) !== segment) return true;
    const isSeen = () => native.recordsSeenSince(segmentId, pinnedGeneration()).records.includes(record);
    if (found.wholeSegment || isSeen()) {
      onCorrupt(Object.assign(new Error(found.damage), { code: 'corrupt' }));
    } else {
      onError(new Error(`${found.damage}; it is dead`));
    }
    return true;
  }
}
