/**
 * Loads values of metadata, which conditions compare and counts read, from the catalog into the engine's memory: once for each
 * field and segment, then for new records alone. Callers share a load. It stops when nobody waits for it, and the next load goes
 * on from there.
 */
import { before } from '../asking.ts';
import type { NativeIndex, NeededValues } from '../engine/native.ts';
import { metadataInParts } from './metadata-parts.ts';

/** By version id; versions that are gone are absent. */
export type VersionMetadata = ReadonlyMap<number, { readonly metadata: string }>;

export interface ValueLoaderDeps {
  readonly native: Pick<NativeIndex, 'segments' | 'recordsWithoutValues' | 'addValues'>;
  readonly catalog: { readMetadata(versionIds: readonly number[]): Promise<VersionMetadata> };
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
