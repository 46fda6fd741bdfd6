/** The f32 rows that a graph gives for texts, neither rotated nor pooled, for `maxsimd models add`. A pool of its own runs them. */
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
  return rowsOf(session, querySequences({ rules, tokenizer }, queries));
}

export function querySequences(
  { rules, tokenizer }: Pick<ServedModel, 'rules' | 'tokenizer'>,
  queries: readonly string[],
): readonly Sequence[] {
  return queries.map((text) => querySequence(rules, tokenizer.encode(rules.queryLead + text)));
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
  return rowsOf(unweighted(session), sequences);
}

/** The token states of each sequence as the graph gives them, of any length, without weights. The ids are moved to the session. */
export function statesOf(
  { session }: Pick<ServedModel, 'session'>,
  sequences: readonly Sequence[],
): AsyncGenerator<Float32Array> {
  return rowsOf({ ...unweighted(session), normalise: false }, sequences);
}

/** Weights are for rows of queries alone. */
function unweighted(session: SessionModel): SessionModel {
  return { ...session, tokenWeightOutput: undefined, tokenWeights: undefined };
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
