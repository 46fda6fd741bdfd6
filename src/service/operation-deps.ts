/** The dependencies of operations, which `create-service.ts` composes, and functions that operations share. */
import type { Catalog } from '../catalog/contract.ts';
import type {
  EncodedQuery,
  EncodeOptions,
  EncodeQueryOptions,
  EncoderPool,
  EncodeTimings,
} from '../encoder/protocol/contract.ts';
import { invalid, unavailable } from '../errors.ts';
import type { Repeats } from '../index/ask-again.ts';
import type { Asker } from '../index/contract.ts';
import type { NativeEngine } from '../index/engine/native.ts';
import type { RequestContext, RequestUsage } from './contract.ts';
import type { Expiry } from './indexes/expiry.ts';
import type { Indexes } from './indexes/indexes.ts';
import type { ModelAliases, ModelOfMoment } from './indexes/served-models.ts';
import type { FairQueue, Piece } from './limits/fair-queue.ts';
import type { TokenAllowance } from './limits/token-allowance.ts';
import { unitsOfSearch } from './limits/work.ts';
import { serviceStage } from './stage-timings.ts';
import type { UsageRecorder } from './usage/usage-recorder.ts';
import type { VersionResolver } from './indexes/version-resolver.ts';

export interface OperationDeps {
  /** Work waits here for the engine's threads. */
  readonly engineQueue: FairQueue;
  /** Long reads of the catalog wait here. */
  readonly scanQueue: FairQueue;
  readonly catalog: Catalog;
  readonly encoders: EncoderPool;
  readonly engine: NativeEngine;
  readonly indexes: Indexes;
  readonly repeats: Repeats;
  readonly allowance: TokenAllowance;
  readonly usage: UsageRecorder;
  readonly versions: VersionResolver;
  readonly expiry: Expiry;
  readonly modelOfMoment: ModelOfMoment;
  readonly modelAliases: ModelAliases;
  readonly nowMs: () => number;
}

export function encodeOptions(context: RequestContext, model: EncodeOptions['model']): EncodeOptions {
  return {
    model,
    tenantId: context.tenant.id,
    deadlineMs: context.deadlineMs,
    signal: context.signal,
  };
}

/**
 * Encodes the text of a field.
 * @throws {ServiceError} `validation_error` when the model cannot encode it.
 */
export async function encodedQuery(
  { encoders }: Pick<OperationDeps, 'encoders'>,
  context: RequestContext,
  { text, path }: { readonly text: string; readonly path: string },
  options: EncodeQueryOptions,
): Promise<EncodedQuery> {
  const query = await encoders.encodeQuery(text, options);
  context.spent.inputTokens += query.inputTokens;
  if (query.problem !== undefined) throw invalid(path, query.problem, 'text_not_encodable');
  return query;
}

/** The times that an encoder reports, as parts of the stage `encode`. */
export function encoderStages({
  tokenizeMs,
  queueMs,
  runMs,
  rowsMs,
}: EncodeTimings): Readonly<Record<string, number>> {
  return { encoder_tokenize: tokenizeMs, encoder_queue: queueMs, encoder_run: runMs, encoder_rows: rowsMs };
}

/** The tokens that are charged without an answer: those that were run, if the caller has left. */
export function tokensLeftBehind({ signal, spent }: RequestContext): bigint {
  return signal.aborted ? BigInt(spent.inputTokens) : 0n;
}

/** Throws when nobody waits for the request any more: the client has gone, or the deadline has passed. */
export function assertWanted(context: RequestContext, nowMs: number): void {
  context.signal.throwIfAborted();
  if (nowMs < context.deadlineMs) return;
  throw unavailable('the request did not end before its deadline');
}

export function pieceOf({ deadlineMs, signal }: RequestContext, work: number): Piece {
  return { work, deadlineMs, signal };
}

/** For an evaluation of conditions. Alone it costs no more than the smallest search. */
export function askerOf(
  { engineQueue }: Pick<OperationDeps, 'engineQueue'>,
  context: RequestContext,
  work = unitsOfSearch,
): Asker {
  const { signal, tenant } = context;
  const piece = pieceOf(context, work);
  return { signal, inTurn: (task) => engineQueue.run(tenant.id, piece, task) };
}

/** Milliseconds until the deadline, at least 1. */
export function timeLeftMs({ deadlineMs }: RequestContext, nowMs: number): number {
  return Math.max(1, deadlineMs - nowMs);
}

export async function timed<T>(context: RequestContext, stage: string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  try {
    return await work();
  } finally {
    context.timings.note(stage, { within: serviceStage, startedAt, ms: performance.now() - startedAt });
  }
}

export function requestUsage(
  context: RequestContext,
  nowMs: number,
  counts: Omit<RequestUsage, 'latencyMs'>,
): RequestUsage {
  return { ...counts, latencyMs: Math.max(0, Math.round(nowMs - context.startedAtMs)) };
}
