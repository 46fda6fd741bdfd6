/**
 * Asks the engine about one open index, in the asker's turns and with the time that is left at the first. It asks again when a
 * merge moved records meanwhile, and after what the engine lacked has been loaded: values of metadata, or parts of a segment.
 */
import { askAgain, type Repeats } from './ask-again.ts';
import { before } from './asking.ts';
import type { Asker } from './contract.ts';
import { absentParts, fromEngine, hasEngineCode, type AbsentParts } from './engine/engine-errors.ts';
import type { NativeMatching, NeededValues } from './engine/native.ts';
import { inSlices, type Sliced } from './slices.ts';
import type { ValueLoader } from './segments/value-loader.ts';

export interface EngineAsksDeps {
  readonly values: Pick<ValueLoader, 'load'>;
  readonly repeats: Repeats;
  /** Throws when only opening the index again helps. */
  readonly assertUsable: () => void;
  /** Absent where every segment is whole. */
  readonly parts?: SegmentParts;
  /** Called with a failure before it is thrown. */
  readonly onFailed: (error: unknown) => void | Promise<void>;
}

/** Segments that a node fetches in parts. */
export interface SegmentParts {
  /** Tells the engine about the parts that have come. */
  noteParts(): void;
  /** Resolves when these parts are here. */
  fetchParts(absent: AbsentParts): Promise<void>;
}

export interface Snapshot {
  readonly generation: number;
  /** How often merges have moved records. */
  readonly moves: number;
}

type Unplaced = Omit<NativeMatching, 'generation'> & NeededValues;

/**
 * A search that looked for its chunks while a merge moved records may have met one of them at both places, or at none. It looks
 * for them in its first slice. From then on it holds the segments, and moves do not matter.
 */
class Moved extends Error {
  override readonly name = 'Moved';
}

export class EngineAsks {
  readonly #deps: EngineAsksDeps;

  constructor(deps: EngineAsksDeps) {
    this.#deps = deps;
  }

  /** `endsAt`: by `performance.now`. `snapshot`: the one to ask about now. */
  async ask<Asked extends Unplaced, T>(
    asked: Asked,
    {
      endsAt,
      signal,
      inTurn,
      snapshot,
    }: Asker & { readonly endsAt: number; readonly snapshot: () => Snapshot },
    begin: (asked: Asked & Pick<Snapshot, 'generation'>) => Sliced<T>,
  ): Promise<T> {
    let { generation, moves } = snapshot();
    const beginNow = (): Sliced<T> =>
      begin({ ...asked, generation, timeoutMs: Math.max(1, endsAt - performance.now()) });
    const mend = async (error: unknown) => {
      if (error instanceof Moved) {
        ({ generation, moves } = snapshot());
        return 'moved';
      }
      if (hasEngineCode(error, 'values_missing')) {
        await this.#deps.values.load({ needed: asked, generation, endsAt, signal });
        return 'values';
      }
      return this.#mendParts(error, endsAt, signal);
    };
    try {
      return await askAgain(this.#deps.repeats, mend, async () => {
        this.#prepare();
        let isFirst = true;
        return await inSlices(beginNow, async (slice) => {
          const found = await inTurn(slice);
          if (isFirst && moves !== snapshot().moves) throw new Moved();
          isFirst = false;
          if (found === undefined) this.#deps.assertUsable();
          return found;
        });
      });
    } catch (error) {
      await this.#deps.onFailed(error);
      throw fromEngine(error);
    }
  }

  /** Runs `read`, which needs no turn, and again when parts were missing. It fails as the engine does. */
  read<T>(endsAt: number, read: () => Promise<T>): Promise<T> {
    const mend = (error: unknown) => this.#mendParts(error, endsAt);
    return askAgain(this.#deps.repeats, mend, async () => {
      this.#prepare();
      return await read();
    });
  }

  #prepare(): void {
    this.#deps.assertUsable();
    this.#deps.parts?.noteParts();
  }

  async #mendParts(error: unknown, endsAt: number, signal?: AbortSignal): Promise<'parts' | undefined> {
    const { parts } = this.#deps;
    const absent = absentParts(error);
    if (absent === undefined || parts === undefined) return undefined;
    await before(endsAt, parts.fetchParts(absent), 'the index is being fetched', signal);
    return 'parts';
  }
}
