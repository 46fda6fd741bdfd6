/**
 * Brings the values that ranges of a `where` compare from the catalog, where metadata is, into the engine's memory: once
 * for each field and segment, and from then on for the records that are new. A load is shared by all that wait for it,
 * and stops when nobody does any more. What it has brought by then stays: the next one goes on from there.
 */
import { ServiceError } from '../../errors.ts';
import { before } from '../before.ts';
import { hasEngineCode } from '../engine/engine-errors.ts';
import type { NativeIndex } from '../engine/native.ts';

/** By version id; versions that are gone are absent. */
export type VersionMetadata = ReadonlyMap<number, { readonly metadata: string }>;

export interface ValueLoaderDeps {
  readonly native: Pick<NativeIndex, 'segments' | 'recordsWithoutValues' | 'addValues'>;
  readonly readMetadata: (versionIds: readonly number[]) => Promise<VersionMetadata>;
}

/** What is read at a time: some milliseconds of a disk, and a millisecond of the event loop. */
const readCharactersMax = 1 << 20;
/** At first, when nothing is known of the size of metadata, which has 16 KiB at most. */
const firstVersions = 64;
const versionsMax = 4096;

interface Condition {
  readonly where?: Uint8Array;
  readonly generation: number;
  /** As `performance.now` tells it. */
  readonly endsAt: number;
  readonly signal: AbortSignal;
}

interface Load {
  readonly ended: Promise<void>;
  waiting: number;
}

export class ValueLoader {
  readonly #deps: ValueLoaderDeps;
  /** One at a time: what it brings, another need not. */
  #load: Load | undefined;

  constructor(deps: ValueLoaderDeps) {
    this.#deps = deps;
  }

  /** Runs `work`, which asks the engine for what meets `where` at a generation, until the engine knows all values that takes. */
  async run<T>(condition: Condition, work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (condition.where === undefined || !hasEngineCode(error, 'values_missing')) throw error;
        this.#load ??= this.#begin(condition.where, condition.generation);
        await waitFor(this.#load, condition);
      }
    }
  }

  #begin(where: Uint8Array, generation: number): Load {
    const load: Load = {
      ended: Promise.resolve()
        .then(() => this.#loadAll(where, generation, load))
        .finally(() => {
          this.#load = undefined;
        }),
      waiting: 0,
    };
    return load;
  }

  async #loadAll(where: Uint8Array, generation: number, load: Load): Promise<void> {
    for (const { segmentId } of this.#deps.native.segments()) {
      await this.#loadSegment(segmentId, where, generation, load).catch((error: unknown) => {
        // It was merged away; its records are met elsewhere.
        const isGone = !this.#deps.native.segments().some((segment) => segment.segmentId === segmentId);
        if (!isGone) throw error;
      });
    }
  }

  async #loadSegment(segmentId: number, where: Uint8Array, generation: number, load: Load): Promise<void> {
    const { native, readMetadata } = this.#deps;
    const { records, versionIds } = await native.recordsWithoutValues(segmentId, generation, where);
    let count = firstVersions;
    for (let first = 0; first < records.length && load.waiting > 0;) {
      const end = Math.min(records.length, first + count);
      const wanted = [...versionIds.subarray(first, end)];
      const found = await readMetadata(wanted);
      const objects = wanted.map((versionId) => found.get(versionId)?.metadata);
      if (!areKnown(objects)) throw unknownVersion();
      await native.addValues(segmentId, where, records.subarray(first, end), objects);
      count = versionsFor(objects);
      first = end;
    }
  }
}

async function waitFor(load: Load, { endsAt, signal }: Condition): Promise<void> {
  load.waiting += 1;
  try {
    await before(endsAt, load.ended, 'values of metadata are being read for the first time', signal);
  } finally {
    load.waiting -= 1;
  }
}

/** How many versions to read next, by the size of those that were read. */
function versionsFor(objects: readonly string[]): number {
  const characters = objects.reduce((sum, object) => sum + object.length, 0);
  const fitting = Math.floor((readCharactersMax * objects.length) / Math.max(1, characters));
  return Math.min(versionsMax, Math.max(firstVersions, fitting));
}

function areKnown(objects: readonly (string | undefined)[]): objects is readonly string[] {
  return !objects.includes(undefined);
}

/** A shorter answer would be a wrong one. */
function unknownVersion(): ServiceError {
  return new ServiceError('service_unavailable', 'the metadata of a document cannot be read', {
    retryAfterSeconds: 1,
  });
}
