/**
 * What searches derive from a sealed segment to be fast (centroid codes): built one segment at a time, in the
 * order asked for, never needed for a right answer. It is rebuilt whenever it is missing; a build that was
 * cut short leaves nothing but a temporary file, which the next open removes.
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
  readonly onError: (error: unknown) => void;
}

export class DerivedData {
  readonly #parts: DerivedDataParts;
  #last: Promise<void> = Promise.resolve();

  constructor(parts: DerivedDataParts) {
    this.#parts = parts;
  }

  /** Resolves when the segment has its derived data, needs none, is gone, or the build has failed and was reported. */
  build(segment: Segment): Promise<void> {
    this.#last = this.#last.then(() => this.#build(segment));
    return this.#last;
  }

  async #build(segment: Segment): Promise<void> {
    const { native, blobs, segments, tokenVectorsMin, onError } = this.#parts;
    const isWanted = (): boolean => segments.get(segment.id) === segment;
    if (segment.tokenVectors < tokenVectorsMin || !isWanted()) return;
    try {
      await native.buildCodes(segment.id);
      // Its files went while this one was being written.
      if (!isWanted()) await removeBlobs(blobs, segment.blob);
    } catch (error) {
      if (isWanted()) onError(error);
    }
  }
}
