/**
 * The shapes that batches have on a GPU. Its libraries choose a kernel, and its memory arena a layout, for every shape they
 * meet, so shapes come from a small set: lengths are multiples of the scheduler's step, and the number of texts is a
 * power of two or what fills the budget. Only batches that are not full grow by it, and those the GPU has time for.
 */
export function paddedTexts(texts: number, paddedLength: number, batchTokens: number): number {
  const full = fullTexts(paddedLength, batchTokens);
  // A text longer than the budget runs alone; a budget that has just shrunk may leave a larger batch.
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
