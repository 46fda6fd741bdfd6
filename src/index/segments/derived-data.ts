/**
 * What searches derive from a sealed segment to be fast: centroid codes, and the postings of its filter terms,
 * which sealing writes. Codes are built one segment at a time, in the order asked for. Neither is needed for a
 * right answer. Both are built again whenever they are missing, codes also where a later build has outdated them.
 *
 * Codes are read with a codebook, a file of the index that is written before the first codes that name it and removed
 * after the last. A build that was cut short leaves a temporary file or a codebook that no codes name: the next open
 * removes them.
 */
import type { BlobStore } from '../storage/blob-store.ts';
import { removeBlobs } from '../storage/blob-removal.ts';
import type { NativeIndex } from '../engine/native.ts';
import type { Segment } from './segment.ts';
import { assertSpace } from '../storage/space.ts';

export interface DerivedDataDeps {
  readonly indexId: string;
  readonly native: NativeIndex;
  readonly blobs: BlobStore;
  readonly segments: ReadonlyMap<number, Segment>;
  /** Segments of fewer token vectors are searched well enough without. */
  readonly tokenVectorsMin: number;
  /** Their codes were made with an older codebook than the index has now. */
  readonly onOutdated: (segments: readonly Segment[]) => void;
  readonly onError: (error: unknown) => void;
}

/** A token vector has at most so many bytes of codes: nothing is fitted and encoded that has no place then. */
const codeBytesMax = 32;

/** Endings of the names of files beside a segment's. */
export const derivedEndings = { codes: '.codes', postings: '.postings' } as const;

/** Begins the names of the files with an index's codebooks. */
export function codebookPrefix(indexId: string): string {
  return `${indexId}/codebook-`;
}

export class DerivedData {
  readonly #deps: DerivedDataDeps;
  #last: Promise<void> = Promise.resolve();
  readonly #waiting = new Map<Segment, Promise<void>>();
  readonly #postings = new Map<Segment, Promise<void>>();
  #building: Segment | undefined;

  constructor(deps: DerivedDataDeps) {
    this.#deps = deps;
  }

  /** Resolves when the segment has its codes, needs none, is gone, or the build has failed and was reported. */
  build(segment: Segment): Promise<void> {
    const waiting = this.#waiting.get(segment);
    if (waiting !== undefined) return waiting;
    const building = this.#inOrder(() => {
      this.#waiting.delete(segment);
      return this.#build(segment);
    });
    this.#waiting.set(segment, building);
    return building;
  }

  /** Removes the codebooks that no codes name any more; to be called when segments have gone. */
  removeUnusedCodebooks(): Promise<void> {
    return this.#inOrder(() => this.#removeUnusedCodebooks());
  }

  /** Likewise for its postings. */
  buildPostings(segment: Segment): Promise<void> {
    const running =
      this.#postings.get(segment) ??
      this.#save(segment, () => this.#deps.native.buildPostings(segment.id)).finally(() =>
        this.#postings.delete(segment),
      );
    this.#postings.set(segment, running);
    return running;
  }

  /** Sealed segments that have no codes, or outdated ones, and are not getting new ones now. */
  due(): readonly Segment[] {
    const { native, segments, tokenVectorsMin } = this.#deps;
    return native.segments().flatMap(({ segmentId, centroids, codesOutdated }) => {
      const segment = segments.get(segmentId);
      if (segment?.state !== 'sealed' || segment.tokenVectors < tokenVectorsMin) return [];
      if (segment === this.#building) return [];
      return centroids === 0 || codesOutdated ? [segment] : [];
    });
  }

  /** Sealed segments without postings that can be used. */
  withoutPostings(): readonly Segment[] {
    const { native, segments } = this.#deps;
    return native.segments().flatMap(({ segmentId, postingBytes }) => {
      const segment = segments.get(segmentId);
      return segment?.state === 'sealed' && postingBytes === 0 ? [segment] : [];
    });
  }

  /** One after the other: a codebook is in place before the codes that name it. */
  #inOrder(work: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(work);
    return this.#last;
  }

  async #build(segment: Segment): Promise<void> {
    const { native, blobs, tokenVectorsMin, onOutdated } = this.#deps;
    if (segment.tokenVectors < tokenVectorsMin) return;
    this.#building = segment;
    await this.#save(segment, async () => {
      await assertSpace(blobs, segment.tokenVectors * codeBytesMax, 'codes');
      const { fitted } = await native.buildCodes(segment.id);
      if (fitted) onOutdated(this.due());
    });
    this.#building = undefined;
    await this.#removeUnusedCodebooks();
  }

  async #removeUnusedCodebooks(): Promise<void> {
    const { indexId, native, blobs, onError } = this.#deps;
    const isUsed = (name: string): boolean =>
      native.segments().some(({ codebook }) => name === `${indexId}/${codebook}`);
    try {
      for (const { name } of await blobs.list(codebookPrefix(indexId))) {
        if (!isUsed(name)) await blobs.remove(name);
      }
    } catch (error) {
      onError(error);
    }
  }

  async #save(segment: Segment, work: () => Promise<void>): Promise<void> {
    const { blobs, segments, onError } = this.#deps;
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
