/** What the ledger may hold: everything that was acknowledged, and of what was not, or was lost since, any part. */
import type { UsageTotals } from '../../../../src/catalog/contract.ts';

export type Counters = Omit<UsageTotals, 'inputTokens' | 'documents' | 'scores'> & {
  readonly inputTokens: number;
};

type Counted = { -readonly [name in keyof Counters]: number };

export class Ledger {
  acknowledged: Counted = { requests: 0, documentUpserts: 0, searches: 0, inputTokens: 0 };
  readonly begun: Counted = { requests: 0, documentUpserts: 0, searches: 0, inputTokens: 0 };

  /** Returns what to call when it is answered. */
  begin(used: Partial<Counters>): () => void {
    const add = (to: Counted): void => {
      to.requests += 1;
      for (const name of ['documentUpserts', 'searches', 'inputTokens'] as const) to[name] += used[name] ?? 0;
    };
    add(this.begun);
    const { acknowledged } = this;
    // Not where it began before a loss.
    return () => add(acknowledged);
  }

  /** Returns what to call when all that is acknowledged from now on may be lost. */
  keep(): () => void {
    const kept = { ...this.acknowledged };
    return () => {
      this.acknowledged = kept;
    };
  }

  /** Empty when all is within its bounds. */
  violations(totals: UsageTotals): readonly string[] {
    return (Object.keys(this.begun) as (keyof Counted)[]).flatMap((name) => {
      const held = Number(totals[name]);
      return this.acknowledged[name] <= held && held <= this.begun[name]
        ? []
        : [`${name}: ${this.acknowledged[name]} acknowledged, ${held} held, ${this.begun[name]} begun`];
    });
  }
}
