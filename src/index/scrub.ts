/**
 * Holds the records, codes and postings of sealed segments against their checksums in the background, besides the check
 * that each record gets when a search first touches it: slowly, one segment after the other, each again after a
 * while. Of the records, what it reads does not push out of the page cache what searches use.
 */
import type { BlobStore } from './blob-store.ts';
import { CopyPace } from './copy-pace.ts';
import { derivedEndings } from './derived-data.ts';
import type { NativeEngine, NativeIndex } from './native.ts';
import type { Segment } from './segment.ts';

/** Of all indexes since the process started. */
export class Verification {
  recordsVerified = 0;
  recordsDamaged = 0;
}

export interface ScrubParts {
  readonly engine: Pick<NativeEngine, 'inspectSegment' | 'inspectCodes' | 'inspectPostings'>;
  readonly native: Pick<NativeIndex, 'recordsSeenSince'>;
  readonly blobs: BlobStore;
  readonly segments: ReadonlyMap<number, Segment>;
  readonly counts: Verification;
  readonly bytesPerSecond: number;
  /** A segment is verified again at this age. */
  readonly ageMsMax: number;
  readonly nowMs: () => number;
  readonly pinnedGeneration: () => number;
  /** A record that is referenced is damaged. */
  readonly onCorrupt: (error: Error) => void;
  /** They are to be built anew: until then they may hand on the wrong chunks, but no wrong score. */
  readonly onDamagedCodes: (segment: Segment) => void;
  /** They are to be built anew: until then filters read the records where they meet the damage. */
  readonly onDamagedPostings: (segment: Segment) => void;
  readonly onError: (error: unknown) => void;
}

const batchBytes = 16 * 1024 * 1024;

export class Scrub {
  readonly #parts: ScrubParts;
  readonly #pace: CopyPace;
  readonly #verifiedAtMs = new Map<number, number>();
  #running: Promise<void> | undefined;
  readonly #stop = new AbortController();

  constructor(parts: ScrubParts) {
    this.#parts = parts;
    this.#pace = new CopyPace(parts.bytesPerSecond);
  }

  /** One pass over what is due; joins one under way. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#pass()
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#parts.onError(error);
      })
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  stop(): void {
    this.#stop.abort();
  }

  async #pass(): Promise<void> {
    const { segments, nowMs, ageMsMax } = this.#parts;
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
    const { engine, blobs, segments, counts } = this.#parts;
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
        throw error;
      }
      counts.recordsVerified += found.recordsVerified;
      counts.recordsDamaged += found.damaged.length;
      for (const { record, what } of found.damaged) this.#report(segment, record, what);
      firstRecord += found.recordsVerified;
      if (firstRecord >= found.records) break;
      await this.#pace.spend(batchBytes, 1, this.#stop.signal);
    }
    const { onDamagedCodes, onDamagedPostings } = this.#parts;
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
    const { blobs, segments, onError } = this.#parts;
    // The list holds what is being written beside it, too.
    const derived = (await blobs.list(segment.blob + ending)).find(
      ({ name }) => name === segment.blob + ending,
    );
    if (derived === undefined) return;
    try {
      const { damage } = await inspect(await blobs.open(derived.name));
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

  #report(segment: Segment, record: number, what: string): void {
    const { native, pinnedGeneration, onCorrupt, onError } = this.#parts;
    const message = `${segment.blob}: damaged record ${record}: ${what}`;
    if (native.recordsSeenSince(segment.id, pinnedGeneration()).records.includes(record)) {
      onCorrupt(Object.assign(new Error(message), { code: 'corrupt' }));
    } else {
      onError(new Error(`${message}; it is dead`));
    }
  }
}
