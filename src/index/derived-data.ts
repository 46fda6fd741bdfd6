/**
 * What searches derive from a sealed segment to be fast: centroid codes, and the postings of its filter terms,
 * which sealing writes. Codes are built one segment at a time, in the order asked for. Neither is needed for a
 * right answer. Both are built again whenever they are missing, codes also where a later build has outdated them;
 * a build that was cut short leaves nothing but a temporary file, which the next open removes.
 */
import type { BlobStore } from './blob-store.ts';
import { removeBlobs } from './blob-removal.ts';
import type { NativeIndex } from './native.ts';
import type { Segment } from './segment.ts';
import { assertSpace } from './space.ts';

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

/** Of codes, for a token vector at most: nothing is fitted and encoded that has no place then. */
const codeBytesMax = 32;

/** Endings of the names of files beside a segment's. */
export const derivedEndings = { codes: '.codes', postings: '.postings' } as const;

export class DerivedData {
  readonly #parts: DerivedDataParts;
  #last: Promise<void> = Promise.resolve();
  readonly #waiting = new Map<Segment, Promise<void>>();
  readonly #postings = new Map<Segment, Promise<void>>();
  #building: Segment | undefined;

  constructor(parts: DerivedDataParts) {
    this.#parts = parts;
  }

  /** Resolves when the segment has its codes, needs none, is gone, or the build has failed and was reported. */
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

  /** Likewise for its postings. */
  buildPostings(segment: Segment): Promise<void> {
    const running =
      this.#postings.get(segment) ??
      this.#save(segment, () => this.#parts.native.buildPostings(segment.id)).finally(() =>
        this.#postings.delete(segment),
      );
    this.#postings.set(segment, running);
    return running;
  }

  /** Sealed segments that have no codes, or outdated ones, and are not getting new ones now. */
  due(): readonly Segment[] {
    const { native, segments, tokenVectorsMin } = this.#parts;
    return native.segments().flatMap(({ segmentId, centroids, codesOutdated }) => {
      const segment = segments.get(segmentId);
      if (segment?.state !== 'sealed' || segment.tokenVectors < tokenVectorsMin) return [];
      if (segment === this.#building) return [];
      return centroids === 0 || codesOutdated ? [segment] : [];
    });
  }

  /** Sealed segments without postings that can be used. */
  withoutPostings(): readonly Segment[] {
    const { native, segments } = this.#parts;
    return native.segments().flatMap(({ segmentId, postingBytes }) => {
      const segment = segments.get(segmentId);
      return segment?.state === 'sealed' && postingBytes === 0 ? [segment] : [];
    });
  }

  async #build(segment: Segment): Promise<void> {
    const { native, blobs, tokenVectorsMin, onOutdated } = this.#parts;
    if (segment.tokenVectors < tokenVectorsMin) return;
    this.#building = segment;
    await this.#save(segment, async () => {
      await assertSpace(blobs, segment.tokenVectors * codeBytesMax, 'codes');
      const { fitted } = await native.buildCodes(segment.id);
      if (fitted) onOutdated(this.due());
    });
    this.#building = undefined;
  }

  async #save(segment: Segment, work: () => Promise<void>): Promise<void> {
    const { blobs, segments, onError } = this.#parts;
    const isWanted = (): boolean => segments.get(segment.id) === segment;
    if (!isWanted()) return;
    try {
      try {
        await work();
      } finally {
        // Its files went while this one was being written; a failure may have left some of what it wrote.
        if (!isWanted()) await removeBlobs(blobs, segment.blob);
      }
    } catch (error) {
      if (isWanted()) onError(error);
    }
  }
}
