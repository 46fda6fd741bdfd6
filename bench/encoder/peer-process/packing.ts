/**
 * Batches without a padded position: no batching can be faster. All sequences form one stream, shortest first, and the stream is
 * cut again. Each batch takes the length of the sequence at its place, and as many sequences of it as it can hold. Tokens,
 * number of positions and (nearly) lengths are those of the mix. Texts are not kept apart.
 */
import type { PackedBatch } from '../../lib/model/onnxruntime-session.ts';

/** `batchTokens` bounds the positions of a batch; a longer sequence is a batch of its own. */
export function packSequences(sequences: readonly Int32Array[], batchTokens: number): readonly PackedBatch[] {
  const sorted = sequences.toSorted((a, b) => a.length - b.length);
  const stream = Int32Array.from(sorted.flatMap((sequence) => [...sequence]));
  const batches: PackedBatch[] = [];
  let at = 0;
  let sequence = 0;
  let sequenceEnd = sorted[0]?.length ?? 0;
  while (at < stream.length) {
    while (sequenceEnd <= at) sequenceEnd += sorted[++sequence]!.length;
    let length = sorted[sequence]!.length;
    let texts = Math.max(1, Math.floor(batchTokens / length));
    if (texts * length > stream.length - at) {
      texts = Math.ceil((stream.length - at) / length);
      length = Math.ceil((stream.length - at) / texts);
    }
    const ids = stream.slice(at, at + texts * length);
    // The last batch may lack a few tokens of a whole rectangle: it takes them from the front.
    batches.push({
      ids: ids.length === texts * length ? ids : filled(ids, stream, texts * length),
      texts,
      length,
    });
    at += texts * length;
  }
  return batches;
}

function filled(ids: Int32Array, stream: Int32Array, size: number): Int32Array {
  const full = new Int32Array(size);
  for (let i = 0; i < size; i++) full[i] = ids[i] ?? stream[(i - ids.length) % stream.length]!;
  return full;
}
