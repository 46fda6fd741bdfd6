/**
 * Builds the derived data of sealed segments, which makes searches fast: centroid codes, and the postings of filter terms
 * (sealing writes these first). No right answer needs them, so they are built again when they are missing or damaged.
 * Codes are also built again when a later build has fitted a new codebook. They are built one segment at a time.
 *
 * Codes are read with a codebook, a file of the index. It is written before the first codes that name it and removed
 * after the last. A build that was cut short leaves a temporary file, or a codebook that no codes name. The next open
 * removes those.
 */
import { SharedRuns } from '../../shared-runs.ts';
import { assertSpace, removeBlobs } from '../storage/blob-store.ts';
import type { Segment, SegmentDeps } from './segment.ts';

export interface DerivedDataDeps extends SegmentDeps {
  /** Called with the segments whose codes were made with an older codebook than the index has now. */
  readonly onOutdated: (segments: readonly Segment[]) => void;
  readonly onError: (error: unknown) => void;
}

/** Codes take at most this many bytes a token vector. Without space for them no build begins. */
const codeBytesMax = 32;

/** Endings of the names of files beside a segment's. */
export const derivedEndings = { codes: '.codes', postings: '.postings' } as const;

/**
 * Names of files of columns: the segment's, this, and a hash of the field. Such a file is not built ahead: it is written when its
 * field is used, and its loss costs one read of the catalog (`column-files.ts`).
 */
export const columnsPrefix = '.columns-';

/** The segment that a column belongs to; `undefined` for other files, and for a column that is not written to its end. */
export function segmentOfColumn(name: string): string | undefined {
  return /^(.+\.seg)\.columns-[0-9a-f]{16}$/.exec(name)?.[1];
}

/** The names of an index's codebooks begin with this. */
export function codebookPrefix(indexId: string): string {
  return `${indexId}/codebook-`;
}

export class DerivedData {
  readonly #deps: DerivedDataDeps;
  #last: Promise<void> = Promise.resolve();
  readonly #waiting = new Map<Segment, Promise<void>>();
  readonly #postings = new SharedRuns();
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

  /** Removes the codebooks that no codes name any more. Call it when segments have gone. */
  removeUnusedCodebooks(): Promise<void> {
    return this.#inOrder(() => this.#removeUnusedCodebooks());
  }

  /** Does for postings what `build` does for codes. */
  buildPostings(segment: Segment): Promise<void> {
    const build = () => this.#deps.native.buildPostings(segment.id);
    return this.#postings.run(() => this.#save(segment, build), segment);
  }

  /** Sealed segments that have no codes, or outdated ones, and are not getting new ones now. */
  due(): readonly Segment[] {
    const { native, segments, settings } = this.#deps;
    return native.segments().flatMap(({ segmentId, centroids, codesOutdated }) => {
      const segment = segments.get(segmentId);
      if (segment?.state !== 'sealed' || segment.tokenVectors < settings.codesTokenVectorsMin) return [];
      if (segment === this.#building) return [];
      return centroids === 0 || codesOutdated ? [segment] : [];
    });
  }

  withoutPostings(): readonly Segment[] {
    const { native, segments } = this.#deps;
    return native.segments().flatMap(({ segmentId, postingBytes }) => {
      const segment = segments.get(segmentId);
      return segment?.state === 'sealed' && postingBytes === 0 ? [segment] : [];
    });
  }

  /** Runs builds one after the other, so that a codebook is in place before the codes that name it. */
  #inOrder(work: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(work);
    return this.#last;
  }

  async #build(segment: Segment): Promise<void> {
    const { native, blobs, settings, onOutdated } = this.#deps;
    if (segment.tokenVectors < settings.codesTokenVectorsMin) return;
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
        // The segment was removed while this file was written: the file goes, too.
        if (!isWanted()) await removeBlobs(blobs, segment.blob);
      }
    } catch (error) {
      if (isWanted()) onError(error);
    }
  }
}
