/** Batch sizes and bounds: what was asked for, or what was measured to be best for the provider. */
import type { EncoderArguments } from './arguments.ts';
import type { SchedulerOptions } from './scheduler.ts';

/**
 * Padded tokens of a batch, and the step that lengths are padded to. On the CPU 256, 512 and 1024 tokens a batch differ by
 * 3% in tokens per CPU second, so the smallest wins: a query waits for the batch that runs.
 */
const best = {
  cpu: { documentBatchTokens: 256, queryBatchTokens: 256, lengthStep: 1 },
  cuda: { documentBatchTokens: 16_384, queryBatchTokens: 2048, lengthStep: 16 },
} as const;

export function tuning(options: EncoderArguments, provider: 'cpu' | 'cuda'): SchedulerOptions {
  const known = best[provider];
  return {
    documentBatchTokens: options['batch-tokens'] || known.documentBatchTokens,
    queryBatchTokens: options['query-batch-tokens'] || known.queryBatchTokens,
    lengthStep: known.lengthStep,
    lookAheadBatches: 8,
    queryBurstMax: 8,
    queuedTokensMax: options['queue-tokens-max'],
    queuedRequestsMax: options['queue-requests-max'],
  };
}
