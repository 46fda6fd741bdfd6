/**
 * A merge copies the records that are still needed from some sealed segments (the sources) into a new one (the target),
 * which takes their place.
 *
 * A crash at any step loses nothing. The target is immutable, durable and has its derived data before the catalog places a
 * version there. Places are noted in small transactions, so that no commit waits long. After each of them the catalog is
 * consistent. The last transaction names the target and removes the sources. Objects that nothing names are garbage, and
 * the next open of a directory removes files that nothing names.
 *
 * Searches never wait. In memory all versions lie in the sources until the last transaction. Then all move in one turn of the
 * event loop.
 */
import type { Moves, NamedSegment } from '../../contracts/index-state.ts';
import type { NativeIndex, SeenRecords } from '../engine/native.ts';
import type { IndexSettings } from '../index-settings.ts';
import type { CopyPace } from './copy-pace.ts';
import { copyRecords } from './copy-records.ts';
import type { MergeHost, MergeTarget } from './merge-host.ts';
import { hasteOf } from './merge-policy.ts';
import type { HeldTurn } from './merge-turn.ts';

export interface MergeDeps {
  readonly native: NativeIndex;
  readonly settings: IndexSettings;
  readonly pace: CopyPace;
  readonly host: MergeHost;
  /** Whether the index is being closed. A merge gives up at its next batch then. */
  readonly isClosed: () => boolean;
}

/** The records of one source that were copied. `records[i]` lies at `first + i` of the target. */
export interface CopiedRecords extends SeenRecords {
  readonly sourceId: number;
  readonly first: number;
}

/** One transaction of SQLite takes about 10 ms of the catalog's writer. */
const movesMax = 1024;

export class Merge {
  readonly sourceIds: readonly number[];
  readonly held: HeldTurn;
  readonly copied: CopiedRecords[] = [];
  target: MergeTarget | undefined;
  readonly #deps: MergeDeps;

  constructor(deps: MergeDeps, held: HeldTurn, sourceIds: readonly number[]) {
    this.#deps = deps;
    this.held = held;
    this.sourceIds = sourceIds;
  }

  /** Rejects when it was given up, or when nobody knows what the catalog holds. */
  async run(): Promise<void> {
    const { host } = this.#deps;
    let hasCatalogChanged = false;
    try {
      const target = await this.#fill();
      for (const moves of this.#moves()) {
        this.#assertGoingOn();
        hasCatalogChanged = true;
        await this.held.turn.place(target?.id ?? 0, moves);
      }
      await host.changeOver(this, () => {
        this.#assertGoingOn();
        hasCatalogChanged = true;
        return this.#swap(target);
      });
    } catch (error) {
      await host.ended(this, hasCatalogChanged ? 'uncertain' : 'given up', error);
      throw error;
    }
    await host.ended(this, 'merged');
  }

  /** Copies everything that a reader may still see into a target. `undefined` if there is nothing. */
  async #fill(): Promise<NamedSegment | undefined> {
    const { host } = this.#deps;
    if (this.sourceIds.every((id) => this.#seen(id).records.length === 0)) return undefined;
    const target = await host.createTarget();
    this.target = target;
    let first = 0;
    for (const sourceId of this.sourceIds) {
      const seen = this.#seen(sourceId);
      await this.#copy({ from: sourceId, records: seen.records, to: target.id, first });
      this.copied.push({ sourceId, ...seen, first });
      first += seen.records.length;
    }
    this.#assertGoingOn();
    const named = await host.finish(target);
    this.#assertGoingOn();
    return named;
  }

  #seen(sourceId: number): SeenRecords {
    const { native, host } = this.#deps;
    return native.recordsSeenSince(sourceId, host.pinnedGeneration());
  }

  #copy(copy: Parameters<typeof copyRecords>[1]): Promise<void> {
    const { native, pace, settings, host } = this.#deps;
    return copyRecords(
      {
        native,
        pace,
        haste: () => hasteOf(host.segments().size, settings),
        assertOpen: () => this.#assertGoingOn(copy.from),
      },
      copy,
    );
  }

  *#moves(): Generator<Moves> {
    for (const { versionIds, first } of this.copied) {
      for (let start = 0; start < versionIds.length; start += movesMax) {
        const part = versionIds.subarray(start, start + movesMax);
        yield {
          versionIds: part,
          records: new Uint32Array(part.length).map((_, place) => first + start + place),
        };
      }
    }
  }

  async #swap(target: NamedSegment | undefined): Promise<void> {
    const isSwapped = await this.held.turn.swap({
      removedSegmentIds: this.sourceIds,
      ...(target && { target }),
    });
    if (!isSwapped) throw turnLost();
  }

  /** `sourceId`: another node may have merged it away. This node may see that before it knows the turn lost. */
  #assertGoingOn(sourceId?: number): void {
    if (this.#deps.isClosed()) throw new Error('the index is being closed');
    const isGone = sourceId !== undefined && !this.#deps.host.segments().has(sourceId);
    if (this.held.isLost || isGone) throw turnLost();
  }
}

function turnLost(): Error {
  return new Error('another node took the turn to merge');
}
