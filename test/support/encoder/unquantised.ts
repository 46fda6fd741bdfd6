/** Computes the token vectors of a text as the model's graph gives them, before they are quantised. */
import { documentSequence, querySequence, type Sequence } from '../../../src/encoder/model/colbert-rules.ts';
import type { SessionPool } from '../../../src/encoder/inference/session-pool.ts';
import type { ServedModel } from '../../../src/encoder/model/served-model.ts';

export function queryOf({ rules, tokenizer }: ServedModel, text: string): Sequence {
  return querySequence(rules, tokenizer.encode(rules.queryLead + text));
}

/** Token vectors of the first window of a document. The window is as long as the model allows. */
export function documentOf({ rules, tokenizer, windowTokensMax }: ServedModel, text: string): Sequence {
  return documentSequence(rules, tokenizer.encode(rules.documentLead + text).subarray(0, windowTokensMax));
}

/** Token vectors of a sequence, one after the other. */
export async function unquantisedRows(
  sessions: SessionPool,
  dim: number,
  { ids, attended, kept }: Sequence,
): Promise<Float32Array> {
  const { output } = await sessions.run({
    // A query batch, because only these have vectors that are not quantised.
    kind: 'query',
    modelIndex: 0,
    ids,
    lengths: Uint32Array.of(ids.length),
    attended: Uint32Array.of(attended),
    kept: undefined,
    rows: ids.length,
    paddedLength: ids.length,
    paddedTexts: 1,
  });
  if (output.kind !== 'query') throw new Error('these are no vectors of a query');
  return output.vectors.filter((_, i) => kept?.[Math.floor(i / dim)] !== 0);
}
