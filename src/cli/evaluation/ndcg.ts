/**
 * Normalised discounted cumulative gain as `trec_eval` computes `ndcg_cut` (and so pytrec_eval and BEIR):
 *
 *   DCG@k = sum over ranks 1..k of gain(rank) / log2(rank + 1),   nDCG@k = DCG@k / ideal DCG@k
 *
 * The gain is the grade itself (linear, not 2^grade - 1). Grades below 0 count as 0. The ideal ranking has all judged
 * documents of the query, retrieved or not. A query without a relevant document scores 0. Source: Jarvelin and Kekalainen
 * 2002; trec_eval m_ndcg_cut.c.
 */
export function ndcg(
  ranking: readonly string[],
  grades: ReadonlyMap<string, number>,
  cutoff: number,
): number {
  const gains = ranking.slice(0, cutoff).map((docId) => Math.max(0, grades.get(docId) ?? 0));
  const ideal = [...grades.values()]
    .filter((grade) => grade > 0)
    .toSorted((a, b) => b - a)
    .slice(0, cutoff);
  return ideal.length === 0 ? 0 : discounted(gains) / discounted(ideal);
}

function discounted(gains: readonly number[]): number {
  return gains.reduce((sum, gain, position) => sum + gain / Math.log2(position + 2), 0);
}
