/** Histograms of the time that requests spent in each stage of the encoder since its start. */
import type { EncodeTimings } from '../protocol/contract.ts';
import type { BatchKind } from '../inference/session-protocol.ts';
import type { StageHistogram } from '../protocol/wire.ts';

export type EncoderStage = 'tokenize' | 'queue' | 'run' | 'rows';

/** Upper bounds of the buckets, in milliseconds. */
export const stageBoundsMs = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
];

const stages = {
  tokenize: 'tokenizeMs',
  queue: 'queueMs',
  run: 'runMs',
  rows: 'rowsMs',
} as const satisfies Record<EncoderStage, keyof EncodeTimings>;
const kinds: readonly BatchKind[] = ['query', 'document'];

export class StageTimes {
  readonly #histograms = kinds.flatMap((kind) =>
    (Object.keys(stages) as EncoderStage[]).map((stage) => ({
      kind,
      stage,
      counts: stageBoundsMs.map(() => 0).concat(0),
      sumMs: 0,
    })),
  );

  observe(kind: BatchKind, timings: EncodeTimings): void {
    for (const histogram of this.#histograms) {
      if (histogram.kind !== kind) continue;
      const ms = timings[stages[histogram.stage]];
      const at = stageBoundsMs.findIndex((bound) => ms <= bound);
      histogram.counts[at === -1 ? stageBoundsMs.length : at]! += 1;
      histogram.sumMs += ms;
    }
  }

  snapshot(): StageHistogram[] {
    return this.#histograms.map((histogram) => ({ ...histogram, counts: [...histogram.counts] }));
  }
}
