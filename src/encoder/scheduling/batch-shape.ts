/**
 * The shapes of batches on a GPU. Its libraries choose a kernel for every new shape, and its memory arena a layout. So shapes come
 * from a small set: lengths are multiples of the scheduler's step, and the number of texts is a power of two or the number that
 * fills the budget. Only batches that are not full are padded with texts, and then the GPU has time for that.
 */
export function paddedTexts(texts: number, paddedLength: number, batchTokens: number): number {
  const full = fullTexts(paddedLength, batchTokens);
  // A text longer than the budget runs alone. And a batch may be larger than a budget that has just shrunk.
  if (texts >= full) return texts;
  return Math.min(full, 2 ** Math.ceil(Math.log2(texts)));
}

/** Every length that a batch may have, ascending. */
export function paddedLengths(step: number, positionsMax: number): readonly number[] {
  const count = Math.ceil(positionsMax / step);
  return Array.from({ length: count }, (_, i) => (i + 1) * step);
}

/** Every number of texts that a batch of this length may have, ascending. */
export function paddedTextCounts(paddedLength: number, batchTokens: number): readonly number[] {
  const full = fullTexts(paddedLength, batchTokens);
  const counts: number[] = [];
  for (let count = 1; count < full; count *= 2) counts.push(count);
  return [...counts, full];
}

function fullTexts(paddedLength: number, batchTokens: number): number {
  return Math.max(1, Math.floor(batchTokens / paddedLength));
}
