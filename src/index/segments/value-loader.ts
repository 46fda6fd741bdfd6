/**
 * Gives the engine the values of metadata that conditions compare and counts read. The engine looks for them in the files of
 * columns. The rest is read from the catalog: once for each field and segment, then for new records alone. Callers share a load. It
 * stops when nobody waits for it, and the next load goes on from there.
 *
 * Then the columns of segments with codes are saved as files, which no request waits for. If that fails, for want of space perhaps,
 * they stay in memory. After a merge the files of the merged segment are made from those of its sources.
 */
import { before } from '../asking.ts';
import type { ColumnFiles, NativeIndex, NeededValues } from '../engine/native.ts';
import { keepColumns, type ColumnStore } from './column-files.ts';
import { metadataInParts } from './metadata-parts.ts';

/** By version id; versions that are gone are absent. */
export type VersionMetadata = ReadonlyMap<number, { readonly metadata: string }>;

export interface ValueLoaderDeps {
  readonly native: Pick<
    NativeIndex,
    'segments' | 'recordsWithoutValues' | 'addValues' | 'saveValues' | 'copyValues'
  >;
  readonly catalog: { readMetadata(versionIds: readonly number[]): Promise<VersionMetadata> };
  /** Where the files of columns lie. */
  readonly columns: ColumnStore;
  /** The name of an open segment's file. */
  readonly blobOf: (segmentId: number) => string | undefined;
  /** A file could not be written. */
  readonly onError: (error: unknown) => void;
}

/** A segment and the name of its file. */
export interface NamedFile {
  readonly id: number;
  readonly blob: string;
}

interface Wanted {
  readonly needed: NeededValues;
  readonly generation: number;
  /** By `performance.now`. */
  readonly endsAt: number;
  readonly signal: AbortSignal;
}

interface Load {
  readonly ended: Promise<void>;
  /** How many callers wait for it. */
  waiting: number;
}

export class ValueLoader {
  readonly #deps: ValueLoaderDeps;
  /** One load at a time, since two may want the same values. */
  #load: Load | undefined;
  /** Resolve when no file is being copied, and when none is being written. */
  #copying: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: ValueLoaderDeps) {
    this.#deps = deps;
  }

  /**
   * Loads the needed values that the engine lacks at a generation. A caller may have to ask for them again: it shares a load that
   * has begun, which may be of other fields.
   */
  async load(wanted: Wanted): Promise<void> {
    this.#load ??= this.#begin(wanted.needed, wanted.generation);
    await waitFor(this.#load, wanted);
  }

  /** Makes columns of a segment that a merge has made, from those of all other segments that are open now. Never rejects. */
  copy(segment: NamedFile): Promise<void> {
    // The engine takes hold of the others before it returns.
    const copied = this.#write(segment, () => this.#deps.native.copyValues(segment.id));
    this.#copying = this.#copying.then(() => copied);
    return copied;
  }

  /** Resolves when no file is being written. */
  settled(): Promise<void> {
    return this.#writing;
  }

  /** Never rejects. */
  #write(segment: NamedFile, save: () => Promise<ColumnFiles>): Promise<void> {
    const written = this.#keep(segment, save);
    this.#writing = this.#writing.then(() => written);
    return written;
  }

  /** Does nothing for a segment without codes. */
  async #keep({ id, blob }: NamedFile, save: () => Promise<ColumnFiles>): Promise<void> {
    const { native, columns, blobOf, onError } = this.#deps;
    const isOpen = (): boolean => blobOf(id) === blob;
    try {
      const hasCodes = native
        .segments()
        .some(({ segmentId, centroids }) => segmentId === id && centroids > 0);
      if (hasCodes) await keepColumns(columns, { blob, isOpen }, save);
    } catch (error) {
      if (isOpen()) onError(error);
    }
  }

  #begin(needed: NeededValues, generation: number): Load {
    const load: Load = {
      ended: Promise.resolve()
        .then(() => this.#loadAll(needed, generation, load))
        .finally(() => {
          this.#load = undefined;
        }),
      waiting: 0,
    };
    return load;
  }

  async #loadAll(needed: NeededValues, generation: number, load: Load): Promise<void> {
    // A file that is being copied may hold what is needed.
    await this.#copying;
    for (const { segmentId } of this.#deps.native.segments()) {
      await this.#loadSegment(segmentId, needed, generation, load).catch((error: unknown) => {
        // A merge removed the segment. Its records are in another one, which the next load finds.
        const isGone = !this.#deps.native.segments().some((segment) => segment.segmentId === segmentId);
        if (!isGone) throw error;
      });
    }
  }

  async #loadSegment(segmentId: number, needed: NeededValues, generation: number, load: Load): Promise<void> {
    const { native, catalog } = this.#deps;
    const { records, versionIds } = await native.recordsWithoutValues(segmentId, generation, needed);
    const read = (wanted: readonly number[]): Promise<VersionMetadata> => catalog.readMetadata(wanted);
    if (load.waiting === 0) return;
    for await (const { first, versions } of metadataInParts(versionIds, read)) {
      const objects = versions.map(({ metadata }) => metadata);
      await native.addValues(segmentId, needed, records.subarray(first, first + objects.length), objects);
      if (load.waiting === 0) return;
    }
    const blob = this.#deps.blobOf(segmentId);
    if (blob !== undefined)
      void this.#write({ id: segmentId, blob }, () => native.saveValues(segmentId, needed));
  }
}

async function waitFor(load: Load, { endsAt, signal }: Wanted): Promise<void> {
  load.waiting += 1;
  try {
    await before(endsAt, load.ended, 'values of metadata are being read for the first time', signal);
  } finally {
    load.waiting -= 1;
  }
}
