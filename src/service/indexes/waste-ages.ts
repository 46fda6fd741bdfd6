/**
 * When nodes rewrite segments that hold deleted data. Deleted data must be physically gone within 24 hours. For a part of them the
 * objects are kept after a merge has replaced them (`replacedKeptMs`, 20 hours at most). An open index is rewritten after half
 * of the rest. All indexes are swept after a quarter of the rest. The last quarter is left for the work.
 */
const goneMs = 24 * 3_600_000;

export function wasteAges(replacedKeptMs: number): {
  readonly wasteAgeMsMax: number;
  readonly sweepAgeMs: number;
} {
  const rest = goneMs - replacedKeptMs;
  return { wasteAgeMsMax: rest / 2, sweepAgeMs: rest / 4 };
}

/** Indexes that a node takes up at a time, once a minute. Most hold no waste and cost a row. */
export const sweptAtOnce = 500;
