/**
 * Share of a query's relevant documents (grade above 0) that are among the first `cutoff` of the ranking, as `trec_eval`
 * computes `recall`. The denominator counts all relevant documents, even if they are more than the cutoff. A query without
 * a relevant document scores 0.
 */
export function recall(
  ranking: readonly string[],
  grades: ReadonlyMap<string, number>,
  cutoff: number,
): number {
  const relevant = [...grades.values()].filter((grade) => grade > 0).length;
  if (relevant === 0) return 0;
  const found = ranking.slice(0, cutoff).filter((docId) => (grades.get(docId) ?? 0) > 0).length;
  return found / relevant;
}
