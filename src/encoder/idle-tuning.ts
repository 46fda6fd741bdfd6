/**
 * Runs the budget sweep through the encoder itself, so that what is measured holds padding and hand-over too: a mix of
 * document lengths is queued at once under each budget. Work of callers comes first: the sweep begins only when
 * there was none for a while, gives way at once when some comes, and begins again later.
 */
import { totalmem } from 'node:os';
import { setTimeout as pauseOf } from 'node:timers/promises';
import {
  type BudgetMeasurement,
  type BudgetSweep,
  documentBudgets,
  SweepStopped,
  sweepBudgets,
} from './budget-sweep.ts';
import { documentSequence, type Sequence } from './colbert-rules.ts';
import { type BudgetMemory, writeBudget } from './budget-cache.ts';
import type { EncoderCore } from './encoder-core.ts';
import type { ServedModel } from './served-model.ts';
import type { Logger } from '../logging.ts';

export interface IdleTuningOptions {
  readonly core: EncoderCore;
  readonly provider: 'cpu' | 'cuda';
  readonly workers: number;
  /** In use until the sweep has found another, and whenever it gives way. */
  readonly batchTokens: number;
  /** Without work of callers for so long, the encoder counts as idle. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
  /** For tests. */
  readonly pause?: (ms: number) => Promise<unknown>;
}

/** Tokens queued for one measurement: a few batches for each worker, and enough to time. */
const tokensMin = 4096;
const batchesPerWorker = 4;
const pollMs = 5;
/** What a sweep may add, of the machine's memory: far below the bound at which the supervisor restarts an encoder. */
const memoryShare = 0.1;

/** Sweeps, logs what was measured, and remembers the choice. Settles whatever happens: an encoder serves without it too. */
export async function tuneBudget(
  options: IdleTuningOptions & { readonly memory: BudgetMemory; readonly log: Logger },
): Promise<void> {
  const { memory, log, batchTokens } = options;
  try {
    const sweep = await tuneWhenIdle(options);
    if (sweep === undefined) return;
    const { chosen, ended, rates } = sweep;
    const measured = Object.fromEntries(
      rates.map((rate) => [rate.batchTokens, Math.round(rate.tokensPerSecond)]),
    );
    log.info(
      { batch_tokens: chosen?.batchTokens ?? batchTokens, tokens_per_second: measured, ended },
      'document batches measured',
    );
    if (chosen !== undefined && memory.file !== '') writeBudget(memory, chosen);
  } catch (error) {
    log.warn({ err: error }, 'document batches could not be measured');
  }
}

/** The sweep's result, its choice in use; undefined when the signal ended it. */
export async function tuneWhenIdle(options: IdleTuningOptions): Promise<BudgetSweep | undefined> {
  const { core, provider, idleMs, batchTokens, signal } = options;
  const pause = options.pause ?? (async (ms: number) => pauseOf(ms, undefined, { ref: false }));
  const untilIdle = async (): Promise<void> => {
    let batches = -1;
    for (;;) {
      const { queuedRequests, batches: now } = core.statistics();
      if (signal.aborted) throw new SweepStopped('the encoder is ending');
      if (queuedRequests === 0 && (batches === now || idleMs === 0)) return;
      batches = queuedRequests === 0 ? now : -1;
      await pause(idleMs);
    }
  };
  let idle = false;
  const measure = async (budget: number): Promise<BudgetMeasurement> => {
    for (;;) {
      if (!idle) await untilIdle();
      const rate = await measureOnce(options, budget);
      core.useDocumentBudget(batchTokens);
      idle = rate !== undefined;
      if (rate !== undefined) return { tokensPerSecond: rate, residentBytes: process.memoryUsage.rss() };
    }
  };
  try {
    const sweep = await sweepBudgets({
      candidates: documentBudgets(provider),
      // No constraint is told as none or as more than the machine has.
      residentBytesMax:
        process.memoryUsage.rss() +
        Math.min(process.constrainedMemory() || Infinity, totalmem()) * memoryShare,
      measure,
    });
    if (sweep.chosen !== undefined) core.useDocumentBudget(sweep.chosen.batchTokens);
    return sweep;
  } catch (error) {
    if (error instanceof SweepStopped) return undefined;
    throw error;
  }
}

/** Real tokens a second under a budget; undefined when a caller came. */
async function measureOnce(
  { core, workers, batchTokens, signal }: IdleTuningOptions,
  budget: number,
): Promise<number | undefined> {
  const sequences = lengthMix(core.models[0]!, Math.max(tokensMin, budget * batchesPerWorker * workers));
  const tokens = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
  const giveWay = new AbortController();
  const abort = AbortSignal.any([giveWay.signal, signal]);
  core.useDocumentBudget(budget);
  const startedAt = performance.now();
  const work = Promise.all(
    sequences.map(async (sequence) => core.runDocumentSequence(0, sequence, abort)),
  ).then(() => performance.now() - startedAt);
  // Awaited below.
  work.catch(() => undefined);
  const watch = setInterval(() => {
    if (core.statistics().queuedRequests === 0) return;
    core.useDocumentBudget(batchTokens);
    giveWay.abort();
  }, pollMs);
  try {
    return (tokens / (await work)) * 1000;
  } catch (error) {
    if (signal.aborted) throw new SweepStopped('the encoder is ending');
    if (giveWay.signal.aborted) return undefined;
    throw error;
  } finally {
    clearInterval(watch);
  }
}

/** Lengths as chunks of real documents have them: a third full windows, the rest spread below. Ids are words of any kind. */
function lengthMix({ rules, windowTokensMax, tokenizer }: ServedModel, tokens: number): readonly Sequence[] {
  const words = tokenizer.encode('the encoder measures how fast it is with texts of many lengths');
  const longest = Math.min(256, windowTokensMax);
  const sequences: Sequence[] = [];
  for (let total = 0; total < tokens;) {
    // 97 is coprime to the range: every length comes up before one repeats.
    const spread = 16 + ((sequences.length * 97) % 241);
    const length = sequences.length % 3 === 0 ? longest : Math.min(longest, spread);
    const ids = Int32Array.from({ length }, (_, i) => words[i % words.length] ?? 0);
    sequences.push(documentSequence(rules, ids));
    total += length;
  }
  return sequences;
}
