/** Opens the model file with bare onnxruntime-node, and makes its inputs. */
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { cudaProblem } from '../../../src/encoder/inference/cuda/cuda-library.ts';
import type { ServedModel } from '../../../src/encoder/model/served-model.ts';
import type { Device } from './device.ts';

export interface SessionSettings {
  readonly graphFile: string;
  readonly device: Device;
}

/** The graph that our encoder runs on the device. */
export function settingsFor({ session }: ServedModel, device: Device): SessionSettings {
  return { graphFile: session.graphs[device.provider].file, device };
}

/** Texts of one length: no padding. */
export interface PackedBatch {
  /** [texts x length]. */
  readonly ids: Int32Array;
  readonly texts: number;
  readonly length: number;
}

export type Feeds = Readonly<Record<string, Tensor>>;

/** With the runtime's defaults: idle threads spin. */
export async function openSession({ graphFile, device }: SessionSettings): Promise<InferenceSession> {
  const onGpu = device.provider === 'cuda';
  const problem = onGpu ? cudaProblem() : undefined;
  if (problem !== undefined) throw new Error(`cuda: ${problem}`);
  return InferenceSession.create(graphFile, {
    executionProviders: onGpu ? [{ name: 'cuda', deviceId: device.index }, 'cpu'] : ['cpu'],
    intraOpNumThreads: device.threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
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
