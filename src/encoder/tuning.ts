/** Batch sizes and bounds: what was asked for, else what a sweep found here, else what is known of the provider. */
import type { EncoderArguments } from './arguments.ts';
import type { SchedulerOptions } from './scheduler.ts';
import { queryBurstMax } from './session-protocol.ts';

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

export function tuning(
  options: EncoderArguments,
  provider: 'cpu' | 'cuda',
  found: number | undefined,
): SchedulerOptions {
  const known = best[provider];
  return {
    documentBatchTokens: options['batch-tokens'] || (found ?? known.documentBatchTokens),
    queryBatchTokens: options['query-batch-tokens'] || known.queryBatchTokens,
    lengthStep: known.lengthStep,
    runTokens: known.runTokens,
    lookAheadBatches: known.lookAheadBatches,
    queryBurstMax,
    queuedTokensMax: options['queue-tokens-max'],
    queuedRequestsMax: options['queue-requests-max'],
  };
}

/** How long no caller may have had work before a sweep begins. */
export const idleBeforeSweepMs = 20_000;

/** When to sweep: never when the budget was given or is known from an earlier sweep. */
export function sweepWanted(
  options: Pick<EncoderArguments, 'sweep' | 'batch-tokens' | 'budget-cache'>,
  found: number | undefined,
): 'start' | 'idle' | 'off' {
  if (options['batch-tokens'] > 0 || found !== undefined) return 'off';
  // Without a place to remember the result every start would sweep.
  return options.sweep === 'idle' && options['budget-cache'] === '' ? 'off' : options.sweep;
}
