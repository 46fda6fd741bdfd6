/** The batches that an encoder runs before it serves. They depend on the model and the sizes of batches only. */
import { paddedLengths, paddedTextCounts } from '../scheduling/batch-shape.ts';
import type { BatchKind } from '../inference/session-protocol.ts';
import type { SchedulerOptions } from '../scheduling/scheduler.ts';
import type { ServedModel } from '../model/served-model.ts';

/** One batch, of texts of one length. */
export interface WarmUpBatch {
  readonly kind: BatchKind;
  readonly texts: number;
  /** Tokens of each text, without special tokens. */
  readonly tokens: number;
}

type Model = Pick<ServedModel, 'rules' | 'windowTokensMax'>;
type Limits = Pick<SchedulerOptions, 'lengthStep' | 'documentBatchTokens' | 'queryBatchTokens'>;

/**
 * A GPU takes tens of milliseconds more for the first batch of a shape. Up to so many positions, documents run in batches of every
 * size. By default a chunk has 256 tokens, its special tokens, and a remainder that is too short for a chunk of its own.
 */
const documentPositionsMax = 288;
/** The most positions, and the most texts, of warm-up batches of several queries. */
const queryPositionsMax = 32;
const queryTextsMax = 16;

/** Single texts, and on a GPU batches of several too. */
export function warmUpBatches(
  model: Model,
  provider: 'cpu' | 'cuda',
  limits: Limits,
): readonly WarmUpBatch[] {
  const single = singleTexts(model);
  return provider === 'cpu'
    ? single
    : [...single, ...queryBatches(model, limits), ...documentBatches(model, limits)];
}

/** Texts of 8, 16, 32 tokens and so on up to the longest, as a query and as a document. */
function singleTexts({ rules, windowTokensMax }: Model): readonly WarmUpBatch[] {
  const longest = Math.max(rules.queryPositionsMax, rules.documentPositionsMax);
  const lengths: number[] = [];
  for (let length = 8; length < longest; length *= 2) lengths.push(length);
  return [...lengths, longest].flatMap((length): WarmUpBatch[] => [
    { kind: 'query', texts: 1, tokens: length },
    { kind: 'document', texts: 1, tokens: Math.min(length, windowTokensMax) },
  ]);
}

/** For each padded length one document and a full batch. Up to `documentPositionsMax` also all sizes in between. */
function documentBatches(
  { rules, windowTokensMax }: Model,
  { lengthStep, documentBatchTokens }: Limits,
): readonly WarmUpBatch[] {
  const special = rules.documentHead.length + rules.tail.length;
  return paddedLengths(lengthStep, rules.documentPositionsMax).flatMap((length) => {
    const counts = paddedTextCounts(length, documentBatchTokens);
    const tokens = Math.min(length - special, windowTokensMax);
    return counts
      .filter((texts) => length <= documentPositionsMax || texts === 1 || texts === counts.at(-1))
      .map((texts): WarmUpBatch => ({ kind: 'document', texts, tokens }));
  });
}

function queryBatches({ rules }: Model, { lengthStep, queryBatchTokens }: Limits): readonly WarmUpBatch[] {
  const special = rules.queryHead.length + rules.tail.length;
  const longest = rules.queryPositionsMax;
  // Most expanded queries have one length.
  const lengths =
    rules.expansion === undefined
      ? paddedLengths(lengthStep, Math.min(queryPositionsMax, longest))
      : [rules.expansion.positions];
  return lengths.flatMap((length) => {
    const tokens = Math.min(length, longest) - special;
    return paddedTextCounts(length, queryBatchTokens)
      .filter((texts) => texts > 1 && texts <= queryTextsMax)
      .map((texts): WarmUpBatch => ({ kind: 'query', texts, tokens }));
  });
}
