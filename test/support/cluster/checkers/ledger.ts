/**
 * Checks sums of the usage ledger. It must count all acknowledged requests. It may count any part of the requests that were not
 * acknowledged, or whose commits were lost.
 */
import type { UsageTotals } from '../../../../src/catalog/contract.ts';

export type Counters = Omit<UsageTotals, 'inputTokens' | 'documents' | 'scores'> & {
  readonly inputTokens: number;
};

type Counted = { -readonly [name in keyof Counters]: number };

export class Ledger {
  acknowledged: Counted = { requests: 0, documentUpserts: 0, searches: 0, inputTokens: 0 };
  readonly begun: Counted = { requests: 0, documentUpserts: 0, searches: 0, inputTokens: 0 };

  /** Notes a request. The returned function must be called when the request is answered. */
  begin(used: Partial<Counters>): () => void {
    const add = (to: Counted): void => {
      to.requests += 1;
      for (const name of ['documentUpserts', 'searches', 'inputTokens'] as const) to[name] += used[name] ?? 0;
    };
    add(this.begun);
    const { acknowledged } = this;
    // A request that began before a loss may be lost although it was answered.
    return () => add(acknowledged);
  }

  /** Notes a moment. The returned function must be called if everything acknowledged since then may be lost. */
  keep(): () => void {
    const kept = { ...this.acknowledged };
    return () => {
      this.acknowledged = kept;
    };
  }

  /** Describes the sums that are out of bounds. Empty = none. */
  violations(totals: UsageTotals): readonly string[] {
    return (Object.keys(this.begun) as (keyof Counted)[]).flatMap((name) => {
      const held = Number(totals[name]);
      return this.acknowledged[name] <= held && held <= this.begun[name]
        ? []
        : [`${name}: ${this.acknowledged[name]} acknowledged, ${held} held, ${this.begun[name]} begun`];
    });
  }
}
