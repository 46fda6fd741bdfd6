/** The interface of a side of the encoder benchmark. It passes plain data, because a side may be another process. */
import type { BatchKind } from '../../src/encoder/inference/session-protocol.ts';

/** Texts that every side encodes, whole, once a round. */
export interface Mix {
  readonly name: string;
  readonly kind: BatchKind;
  /** Queries that wait for an answer at any one time; documents come in upserts. */
  readonly inFlight: number;
  readonly texts: readonly string[];
  /** Ids as our encoder runs them, special tokens included. */
  readonly sequences: readonly Int32Array[];
  /** Tokens of the texts, special tokens excluded: what every rate counts. */
  readonly contentTokens: number;
}

export interface RoundTiming {
  readonly wallSeconds: number;
  /** User and system time of every process of the side; undefined where the system does not tell. */
  readonly cpuSeconds: number | undefined;
}

export interface Contender {
  /** Runs once for each mix and is not timed. It warms up, chooses the fastest settings, and names them. */
  prepare(mix: Mix): Promise<string>;
  /** Encodes the prepared mix once. */
  round(): Promise<RoundTiming>;
  /** f32 [tokens x dim] of the first texts of the prepared mix; undefined where texts are not kept apart. */
  vectors(texts: number): Promise<readonly Float32Array[] | undefined>;
  close(): Promise<void>;
}

/** Runs every option twice, and returns the one with the fastest run. */
export async function fastestOf<T>(options: readonly T[], run: (option: T) => Promise<unknown>): Promise<T> {
  const best = new Map<T, number>();
  for (let pass = 0; pass < 2; pass++) {
    for (const option of options) {
      const startedAt = performance.now();
      await run(option);
      best.set(option, Math.min(best.get(option) ?? Infinity, performance.now() - startedAt));
    }
  }
  const [fastest] = [...best.entries()].toSorted(([, a], [, b]) => a - b);
  if (fastest === undefined) throw new Error('this is a bug: a sweep without options');
  return fastest[0];
}
