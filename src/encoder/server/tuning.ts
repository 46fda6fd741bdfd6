/** Batch sizes and bounds: what was asked for, else what is known of the provider. */
import type { EncoderArguments } from './arguments.ts';
import type { SchedulerOptions } from '../scheduling/scheduler.ts';

/**
 * Padded tokens of a batch, and the step that lengths are padded to. On the CPU 256, 512 and 1024 tokens a batch differ by
 * 3% in tokens per CPU second, so the smallest wins: a query waits for the batch that runs. A run costs what 4 tokens cost
 * there on an idle machine and 9 with every core busy (0.5 and 1.05 ms, 0.11 a token), and on a GPU more than most batches.
 */
const best = {
  cpu: { documentBatchTokens: 256, queryBatchTokens: 256, lengthStep: 1, runTokens: 8, lookAheadBatches: 32 },
  cuda: {
    documentBatchTokens: 16_384,
    queryBatchTokens: 2048,
    lengthStep: 16,
    runTokens: 16_384,
    lookAheadBatches: 8,
  },
} as const;

export function tuning(options: EncoderArguments, provider: 'cpu' | 'cuda'): SchedulerOptions {
  const known = best[provider];
  return {
    ...known,
    documentBatchTokens: options['batch-tokens'] || known.documentBatchTokens,
    queryBatchTokens: options['query-batch-tokens'] || known.queryBatchTokens,
    queuedTokensMax: options['queue-tokens-max'],
    queuedRequestsMax: options['queue-requests-max'],
  };
}
