/**
 * Work of the engine that gives way. It runs for a slice of time, keeps its state in the engine, and goes on in the next turn
 * of whoever asked. So a search of seconds holds nobody up for longer than a slice.
 */
import type {
  NativeCounting,
  NativeCounts,
  NativeIndex,
  NativeSearch,
  NativeSearchResult,
} from './engine/native.ts';

export const sliceMs = 50;

export interface Sliced<T> {
  /** Runs the next slice. Resolves to the outcome, or to `undefined` when there is more to do. */
  next(): Promise<T | undefined>;
  /** Frees what it holds. */
  close(): void;
}

/** Work in one piece. */
export function whole<T>(work: () => Promise<T>): Sliced<T> {
  return { next: work, close: () => undefined };
}

export function slicedSearch(
  native: Pick<NativeIndex, 'beginSearch'>,
  search: NativeSearch,
): Sliced<NativeSearchResult> {
  const run = native.beginSearch(search);
  return { next: () => run.next(sliceMs), close: () => run.close() };
}

export function slicedCount(
  native: Pick<NativeIndex, 'countValues'>,
  counting: NativeCounting,
): Sliced<NativeCounts> {
  const endsAt = performance.now() + counting.timeoutMs;
  let paused: object | undefined;
  return {
    async next() {
      const timeoutMs = Math.max(1, endsAt - performance.now());
      const counted = await native.countValues({ ...counting, timeoutMs }, paused);
      if (!('paused' in counted)) return counted;
      ({ paused } = counted);
      return undefined;
    },
    close() {
      paused = undefined;
    },
  };
}

/** Begins work in the first turn, and runs one slice in each. */
export async function inSlices<T>(
  begin: () => Sliced<T>,
  inTurn: (slice: () => Promise<T | undefined>) => Promise<T | undefined>,
): Promise<T> {
  let sliced: Sliced<T> | undefined;
  const next = async (): Promise<T | undefined> => await (sliced ??= begin()).next();
  try {
    for (;;) {
      const outcome = await inTurn(next);
      if (outcome !== undefined) return outcome;
    }
  } finally {
    sliced?.close();
  }
}
