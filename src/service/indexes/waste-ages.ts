/**
 * When nodes that share a catalog rewrite deleted data away. It must be physically gone within 24 hours, and for some
 * of them its objects are kept after a merge has replaced them (`replacedKeptMs`, 20 hours at most). An open index is
 * rewritten after half of the rest; all indexes are swept after a quarter of it, which leaves the last quarter for the work.
 */
const goneMs = 24 * 3_600_000;

export function wasteAges(replacedKeptMs: number): {
  readonly wasteAgeMsMax: number;
  readonly sweepAgeMs: number;
} {
  const rest = goneMs - replacedKeptMs;
  return { wasteAgeMsMax: rest / 2, sweepAgeMs: rest / 4 };
}

/** Indexes that a node takes up at a time, once a minute: most hold no waste and cost a row. */
export const sweptAtOnce = 500;
