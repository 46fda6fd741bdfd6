/**
 * What searches derive from a sealed segment to be fast (centroid codes): built one segment at a time, in the
 * order asked for, never needed for a right answer. It is rebuilt whenever it is missing, and where a later
 * build has outdated it; a build that was cut short leaves nothing but a temporary file, which the next open
 * removes.
 */
import type { BlobStore } from './blob-store.ts';
import { removeBlobs } from './blob-removal.ts';
import type { NativeIndex } from './native.ts';
import type { Segment } from './segment.ts';

export interface DerivedDataParts {
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly segments: ReadonlyMap<number, Segment>;
  /** Segments of fewer token vectors are searched well enough without. */
  readonly tokenVectorsMin: number;
  /** Their codes were made with an older codebook than the index has now. */
  readonly onOutdated: (segments: readonly Segment[]) => void;
  readonly onError: (error: unknown) => void;
}

export class DerivedData {
  readonly #parts: DerivedDataParts;
  #last: Promise<void> = Promise.resolve();
  readonly #waiting = new Map<Segment, Promise<void>>();

  constructor(parts: DerivedDataParts) {
    this.#parts = parts;
  }

  /** Resolves when the segment has its derived data, needs none, is gone, or the build has failed and was reported. */
  build(segment: Segment): Promise<void> {
    const waiting = this.#waiting.get(segment);
    if (waiting !== undefined) return waiting;
    this.#last = this.#last.then(() => {
      this.#waiting.delete(segment);
      return this.#build(segment);
    });
    this.#waiting.set(segment, this.#last);
    return this.#last;
  }

  /** Sealed segments that have none, or outdated ones. */
  due(): readonly Segment[] {
    const { native, segments, tokenVectorsMin } = this.#parts;
    return native.segments().flatMap(({ segmentId, derivedBytes, codesOutdated }) => {
      const segment = segments.get(segmentId);
      if (segment?.state !== 'sealed' || segment.tokenVectors < tokenVectorsMin) return [];
      return derivedBytes === 0 || codesOutdated ? [segment] : [];
    });
  }

  async #build(segment: Segment): Promise<void> {
    const { native, blobs, segments, tokenVectorsMin, onOutdated, onError } = this.#parts;
    const isWanted = (): boolean => segments.get(segment.id) === segment;
    if (segment.tokenVectors < tokenVectorsMin || !isWanted()) return;
    try {
      const { fitted } = await native.buildCodes(segment.id);
      if (fitted) onOutdated(this.due());
      // Its files went while this one was being written.
      if (!isWanted()) await removeBlobs(blobs, segment.blob);
    } catch (error) {
      if (isWanted()) onError(error);
    }
  }
}
