/** Batch sizes and bounds: the given ones, or the best ones for the provider. */
import type { EncoderArguments } from './arguments.ts';
import type { SchedulerOptions } from '../scheduling/scheduler.ts';

/**
 * Padded tokens of a batch, and the step that lengths are padded to. On the CPU, batches of 256, 512 and 1024 tokens differ by 3% in
 * tokens per CPU second. So the smallest is used, because a query waits for the running batch. There a run costs as much as 4
 * tokens on an idle machine, and as 9 tokens when all cores are busy (0.5 and 1.05 ms, with 0.11 ms per token). On a GPU it costs
 * more than most batches, so batches stay as large while tenants share it.
 */
const best = {
  cpu: {
    documentBatchTokens: 256,
    sharedBatchTokens: 128,
    queryBatchTokens: 256,
    lengthStep: 1,
    runTokens: 8,
    lookAheadBatches: 32,
  },
  cuda: {
    documentBatchTokens: 16_384,
    sharedBatchTokens: 16_384,
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
