/** What the bare onnxruntime-node sides share: opening the model file, and making its inputs. */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { PackedBatch } from './packing.ts';

export interface SessionSettings {
  readonly graphFile: string;
  readonly threads: number;
  /** Whether idle threads spin (the runtime's default) or sleep. */
  readonly spinning: boolean;
}

export type Feeds = Readonly<Record<string, Tensor>>;

export async function openSession({
  graphFile,
  threads,
  spinning,
}: SessionSettings): Promise<InferenceSession> {
  return InferenceSession.create(graphFile, {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
    extra: { session: { 'session.intra_op.allow_spinning': spinning ? '1' : '0' } },
  });
}

export function feedsOf({ ids, texts, length }: PackedBatch, usesTokenTypeIds: boolean): Feeds {
  const shape = [texts, length];
  return {
    input_ids: new Tensor('int64', BigInt64Array.from(ids, BigInt), shape),
    attention_mask: new Tensor('int64', new BigInt64Array(ids.length).fill(1n), shape),
    ...(usesTokenTypeIds
      ? { token_type_ids: new Tensor('int64', new BigInt64Array(ids.length), shape) }
      : {}),
  };
}
