/** The f32 rows that a graph gives for texts, neither rotated nor pooled, for `maxsimd models add`. */
import { availableParallelism } from 'node:os';
import { SessionPool } from '../../encoder/inference/session-pool.ts';
import { documentSequence, querySequence, type Sequence } from '../../encoder/model/colbert-rules.ts';
import type { ServedModel, SessionModel } from '../../encoder/model/served-model.ts';

/** As in an index of default chunks. A longer passage is cut. */
const passageTokensMax = 256;
const stuckMs = 240_000;

/** The rows of each query, multiplied by their weights. */
export function queryRowsOf(
  { session, rules, tokenizer }: ServedModel,
  queries: readonly string[],
): AsyncGenerator<Float32Array> {
  const sequences = queries.map((text) => querySequence(rules, tokenizer.encode(rules.queryLead + text)));
  return rowsOf(session, sequences);
}

/** The rows of each passage. */
export function passageRows(
  { session, rules, tokenizer, windowTokensMax }: ServedModel,
  passages: readonly string[],
): AsyncGenerator<Float32Array> {
  const tokensMax = Math.min(passageTokensMax, windowTokensMax);
  const sequences = passages.map((text) =>
    documentSequence(rules, tokenizer.encode(rules.documentLead + text).subarray(0, tokensMax)),
  );
  // Weights are for rows of queries alone.
  return rowsOf({ ...session, tokenWeightOutput: undefined, tokenWeights: undefined }, sequences);
}

/** A text runs alone, and while the caller works on its rows the next one runs. */
async function* rowsOf(session: SessionModel, sequences: readonly Sequence[]): AsyncGenerator<Float32Array> {
  const pool = await SessionPool.open({
    // A session does not rotate rows of 8 bits.
    models: [{ ...session, rowBits: 8, moment: undefined }],
    provider: 'cpu',
    deviceId: 0,
    threads: availableParallelism(),
    workers: 1,
    stuckMs,
    // The batch that runs fails with the reason.
    onFatal: () => undefined,
  });
  const run = async ({ ids, attended, kept, rows }: Sequence): Promise<Float32Array> => {
    const lengths = Uint32Array.of(ids.length);
    const padded = { paddedLength: ids.length, paddedTexts: 1 };
    const batch = { modelIndex: 0, ids, lengths, attended: Uint32Array.of(attended), kept, rows, ...padded };
    // Documents come quantised from a session.
    const { output } = await pool.run({ kind: 'query', ...batch });
    return output.vectors as Float32Array;
  };
  try {
    let next = run(sequences[0]!);
    for (let i = 1; i <= sequences.length; i += 1) {
      const rows = await next;
      if (i < sequences.length) {
        next = run(sequences[i]!);
        // It is awaited after the caller's work, or never.
        next.catch(() => undefined);
      }
      yield rows;
    }
  } finally {
    await pool.close();
  }
}
