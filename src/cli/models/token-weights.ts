/**
 * Weights of query tokens by the tokenizer's vocabulary, which tells how rare a token is in the text that it was made from.
 * WordPiece vocabularies list words by falling frequency, merges of BPE were found in that order, and Unigram has log probabilities.
 */
import { z } from 'zod';
import { tokenIdMax } from '../../encoder/model/tokenizer/tokenizer-parts.ts';

export interface TokenWeights {
  /** The name of the file that they go to. */
  readonly file: string;
  /** f32 [vocabulary]. Special tokens have 0. */
  readonly values: Float32Array;
  /** For people: where they come from. */
  readonly source: string;
}

const file = 'token_weights.f32';
/** The logarithm of rank + this weighs a token, so that the ranks of the most frequent words differ little. */
const rankOffset = 1000;
/** The weight of a middling word is about 1. */
const middling = Math.log(5 * rankOffset);

const tokenId = z.number().int().min(0).max(tokenIdMax);
const idsByPiece = z.record(z.string(), tokenId);

const schema = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: tokenId, special: z.boolean() })).default([]),
  model: z.discriminatedUnion('type', [
    z.looseObject({
      type: z.literal('WordPiece'),
      unk_token: z.string(),
      vocab: idsByPiece,
    }),
    z.looseObject({
      type: z.literal('BPE'),
      vocab: idsByPiece,
      merges: z.array(z.union([z.string(), z.tuple([z.string(), z.string()])])),
    }),
    z.looseObject({
      type: z.literal('Unigram'),
      unk_id: tokenId.nullish(),
      vocab: z.array(z.tuple([z.string(), z.number()])),
    }),
  ]),
});

/** `tokenizer`: the parsed `tokenizer.json`. `undefined` for a vocabulary of another kind: then all tokens weigh the same. */
export function tokenWeightsOf(tokenizer: object): TokenWeights | undefined {
  const parsed = schema.safeParse(tokenizer);
  if (!parsed.success) return undefined;
  const { model, added_tokens: added } = parsed.data;
  const { values: ofModel, unknown, source } = byModel(model);
  // Special tokens may have ids behind the vocabulary. Words that were added there are rare.
  const length = added.reduce((most, { id }) => Math.max(most, id + 1), ofModel.length);
  const values = new Float32Array(length).fill(weightOf(ofModel.length));
  values.set(ofModel);
  for (const { id, special } of added) if (special && id !== unknown) values[id] = 0;
  return { file, values, source };
}

interface Weights {
  readonly values: Float32Array;
  /** The id for text that the vocabulary does not have. Such text is rare. */
  readonly unknown: number | undefined;
  readonly source: string;
}

function byModel(model: z.output<typeof schema>['model']): Weights {
  if (model.type === 'Unigram') {
    const values = Float32Array.from(
      model.vocab,
      ([, logProbability]) => Math.max(0, -logProbability) / middling,
    );
    const unknown = model.unk_id ?? undefined;
    if (unknown !== undefined && unknown < values.length)
      values[unknown] = values.reduce((most, value) => Math.max(most, value), 0);
    return { values, unknown, source: 'log probabilities of the vocabulary' };
  }
  const ids = Object.entries(model.vocab);
  const values = new Float32Array(ids.reduce((most, [, id]) => Math.max(most, id), 0) + 1);
  if (model.type === 'WordPiece') {
    const firstWord = ids.reduce(
      (least, [token, id]) => (isWord(token) ? Math.min(least, id) : least),
      values.length,
    );
    for (const [, id] of ids) values[id] = weightOf(id - firstWord);
    return { values, unknown: model.vocab[model.unk_token], source: 'ranks of the vocabulary' };
  }
  for (const [, id] of ids) values[id] = weightOf(0);
  for (const [rank, merge] of model.merges.entries()) {
    const id = model.vocab[typeof merge === 'string' ? merge.replace(' ', '') : merge.join('')];
    if (id !== undefined) values[id] = weightOf(rank);
  }
  return { values, unknown: undefined, source: 'ranks of merges' };
}

/** Single characters and marks of the vocabulary itself come first, in no order of frequency. */
function isWord(token: string): boolean {
  return token.length > 1 && !token.startsWith('[') && !token.startsWith('##');
}

function weightOf(rank: number): number {
  return Math.log(Math.max(rank, 1) + rankOffset) / middling;
}
