/** Which batches an encoder runs before it serves: a list that depends on the model and the sizes of batches alone. */
import { paddedLengths, paddedTextCounts } from '../scheduling/batch-shape.ts';
import type { BatchKind } from '../inference/session-protocol.ts';
import type { SchedulerOptions } from '../scheduling/scheduler.ts';
import type { ServedModel } from '../model/served-model.ts';

/** One batch, of texts of one length. */
export interface WarmUpBatch {
  readonly kind: BatchKind;
  readonly texts: number;
  /** Tokens of each text, special tokens excluded. */
  readonly tokens: number;
}

type Model = Pick<ServedModel, 'rules' | 'windowTokensMax'>;
type Limits = Pick<SchedulerOptions, 'lengthStep' | 'documentBatchTokens' | 'queryBatchTokens'>;

/**
 * What a GPU runs after single texts: `full`, a document alone and a full batch of every padded length; `wide`, these, batches of
 * several queries, and document batches that are not full.
 */
export const gpuWarmUps = ['full', 'wide'] as const;
export type GpuWarmUp = (typeof gpuWarmUps)[number];

/** The one in use. */
export const gpuWarmUp: GpuWarmUp = 'wide';

/** `wide`: positions of documents in batches that are not full; positions of queries in batches of several, and their numbers. */
const wideDocumentPositionsMax = 256;
const wideQueryPositionsMax = 32;
const wideQueryTextsMax = 16;

export function warmUpBatches(
  model: Model,
  provider: 'cpu' | 'cuda',
  limits: Limits,
  onGpu: GpuWarmUp = gpuWarmUp,
): readonly WarmUpBatch[] {
  const single = singleTexts(model);
  if (provider === 'cpu') return single;
  if (onGpu === 'full') return [...single, ...documentBatches(model, limits, 0)];
  const documents = documentBatches(model, limits, wideDocumentPositionsMax);
  return [...single, ...queryBatches(model, limits), ...documents];
}

/** Texts of 8, 16, 32 tokens and so on up to the longest one, as a query and as a document. */
function singleTexts({ rules, windowTokensMax }: Model): readonly WarmUpBatch[] {
  const longest = Math.max(rules.queryPositionsMax, rules.documentPositionsMax);
  const lengths: number[] = [];
  for (let length = 8; length < longest; length *= 2) lengths.push(length);
  return [...lengths, longest].flatMap((length): WarmUpBatch[] => [
    { kind: 'query', texts: 1, tokens: length },
    { kind: 'document', texts: 1, tokens: Math.min(length, windowTokensMax) },
  ]);
}

/** One document and a full batch of every padded length; up to `positionsMax` all numbers of texts between. */
function documentBatches(
  { rules, windowTokensMax }: Model,
  { lengthStep, documentBatchTokens }: Limits,
  positionsMax: number,
): readonly WarmUpBatch[] {
  const special = rules.documentHead.length + rules.tail.length;
  return paddedLengths(lengthStep, rules.documentPositionsMax).flatMap((length) => {
    const counts = paddedTextCounts(length, documentBatchTokens);
    const tokens = Math.min(length - special, windowTokensMax);
    return counts
      .filter((texts) => length <= positionsMax || texts === 1 || texts === counts.at(-1))
      .map((texts): WarmUpBatch => ({ kind: 'document', texts, tokens }));
  });
}

function queryBatches({ rules }: Model, { lengthStep, queryBatchTokens }: Limits): readonly WarmUpBatch[] {
  const { queryHead, tail, queryPositionsMax, expansion } = rules;
  // Expanded queries have one length.
  const lengths =
    expansion === undefined
      ? paddedLengths(lengthStep, Math.min(wideQueryPositionsMax, queryPositionsMax))
      : [queryPositionsMax];
  return lengths.flatMap((length) => {
    const tokens = Math.min(length, queryPositionsMax) - queryHead.length - tail.length;
    return paddedTextCounts(length, queryBatchTokens)
      .filter((texts) => texts > 1 && texts <= wideQueryTextsMax)
      .map((texts): WarmUpBatch => ({ kind: 'query', texts, tokens }));
  });
}
