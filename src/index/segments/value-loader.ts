/**
 * Brings the values that ranges of a `where` compare from the catalog, where metadata is, into the engine's memory: once
 * for each field and segment, and from then on for the records that are new.
 */
import { ServiceError } from '../../errors.ts';
import { before } from '../before.ts';
import { hasEngineCode } from '../engine/engine-errors.ts';
import type { NativeIndex } from '../engine/native.ts';

/** By version id; versions that are gone are absent. */
export type VersionMetadata = ReadonlyMap<number, { readonly metadata: string }>;

export interface ValueLoaderParts {
  readonly native: Pick<NativeIndex, 'segments' | 'recordsWithoutValues' | 'addValues'>;
  readonly readMetadata: (versionIds: readonly number[]) => Promise<VersionMetadata>;
}

/** Versions that are read together: about a millisecond of the event loop. */
const versionsInTurn = 512;

export class ValueLoader {
  readonly #parts: ValueLoaderParts;
  /** Loads follow one another: what one has brought the next need not. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: ValueLoaderParts) {
    this.#parts = parts;
  }

  /**
   * Runs `work`, which asks the engine for what meets `where` at a generation, until the engine knows all values that
   * takes. The load goes on when nobody waits for it any more.
   */
  async run<T>(
    condition: { readonly where?: Uint8Array; readonly generation: number; readonly endsAt: number },
    work: () => Promise<T>,
  ): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const { where, generation, endsAt } = condition;
        if (where === undefined || !hasEngineCode(error, 'values_missing')) throw error;
        const loaded = this.#last.then(() => this.#load(where, generation));
        this.#last = loaded.catch(() => undefined);
        await before(endsAt, loaded, 'values of metadata are being read');
      }
    }
  }

  async #load(where: Uint8Array, generation: number): Promise<void> {
    for (const { segmentId } of this.#parts.native.segments()) {
      await this.#loadSegment(segmentId, where, generation).catch((error: unknown) => {
        // It was merged away; whoever asks meets its records elsewhere.
        const isGone = !this.#parts.native.segments().some((segment) => segment.segmentId === segmentId);
        if (!isGone) throw error;
      });
    }
  }

  async #loadSegment(segmentId: number, where: Uint8Array, generation: number): Promise<void> {
    const { native, readMetadata } = this.#parts;
    const { records, versionIds } = await native.recordsWithoutValues(segmentId, generation, where);
    for (let first = 0; first < records.length; first += versionsInTurn) {
      const wanted = [...versionIds.subarray(first, first + versionsInTurn)];
      const found = await readMetadata(wanted);
      const objects = wanted.map((versionId) => found.get(versionId)?.metadata);
      if (objects.includes(undefined)) throw unknownVersion();
      await native.addValues(
        segmentId,
        where,
        records.subarray(first, first + versionsInTurn),
        objects as readonly string[],
      );
    }
  }
}

/** A shorter answer would be a wrong one. */
function unknownVersion(): ServiceError {
  return new ServiceError('service_unavailable', 'the metadata of a document cannot be read', {
    retryAfterSeconds: 1,
  });
}
