/**
 * Loads the values that ranges of a `where` compare from the catalog into the engine's memory: once for each field and
 * segment, then for new records alone. Callers share a load. It stops when nobody waits for it, and the next load goes
 * on from there.
 */
import { unavailable } from '../../errors.ts';
import { before } from '../asking.ts';
import { hasEngineCode } from '../engine/engine-errors.ts';
import type { NativeIndex } from '../engine/native.ts';

/** By version id; versions that are gone are absent. */
export type VersionMetadata = ReadonlyMap<number, { readonly metadata: string }>;

export interface ValueLoaderDeps {
  readonly native: Pick<NativeIndex, 'segments' | 'recordsWithoutValues' | 'addValues'>;
  readonly catalog: { readMetadata(versionIds: readonly number[]): Promise<VersionMetadata> };
}

/** One read of the catalog: some milliseconds of a disk, and a millisecond of the event loop. */
const readCharactersMax = 1 << 20;
/** The first read, when the size of the metadata is unknown. One document has at most 16 KiB. */
const firstVersions = 64;
const versionsMax = 4096;

interface Condition {
  readonly where?: Uint8Array;
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
   * Runs `work`, which asks the engine about `where` at a generation. When the engine lacks values, it loads them and runs
   * `work` again.
   */
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
        // A merge removed the segment. Its records are in another one, which the next load finds.
        const isGone = !this.#deps.native.segments().some((segment) => segment.segmentId === segmentId);
        if (!isGone) throw error;
      });
    }
  }

  async #loadSegment(segmentId: number, where: Uint8Array, generation: number, load: Load): Promise<void> {
    const { native, catalog } = this.#deps;
    const { records, versionIds } = await native.recordsWithoutValues(segmentId, generation, where);
    let count = firstVersions;
    for (let first = 0; first < records.length && load.waiting > 0;) {
      const end = Math.min(records.length, first + count);
      const wanted = [...versionIds.subarray(first, end)];
      const found = await catalog.readMetadata(wanted);
      const objects = wanted.map((versionId) => found.get(versionId)?.metadata);
      // Without the values of a document a shorter, wrong answer would follow.
      if (!areKnown(objects)) throw unavailable('the metadata of a document cannot be read');
      await native.addValues(segmentId, where, records.subarray(first, end), objects);
      count = nextVersionCount(objects);
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

/** How many versions the next read shall take, by the size of those that were read. */
function nextVersionCount(objects: readonly string[]): number {
  const characters = objects.reduce((sum, object) => sum + object.length, 0);
  const fitting = Math.floor((readCharactersMax * objects.length) / Math.max(1, characters));
  return Math.min(versionsMax, Math.max(firstVersions, fitting));
}

function areKnown(objects: readonly (string | undefined)[]): objects is readonly string[] {
  return !objects.includes(undefined);
}
