/** A thread of the packed side. It has a session of its own. All threads share the batches, which were prepared before. */
import { parentPort, workerData } from 'node:worker_threads';
import type { InferenceSession } from 'onnxruntime-node';
import {
  type Feeds,
  feedsOf,
  openSession,
  type SessionSettings,
  type PackedBatch,
} from '../../lib/model/onnxruntime-session.ts';

export interface PackedWorkerData {
  readonly settings: SessionSettings;
  readonly usesTokenTypeIds: boolean;
}

export type PackedRequest =
  | {
      readonly type: 'prepare';
      readonly batches: readonly PackedBatch[];
      readonly fetches: readonly string[];
    }
  /** Takes every `step`-th batch by counting `next` up, until there is none. */
  | { readonly type: 'run'; readonly next: Int32Array; readonly step: number };

const { settings, usesTokenTypeIds } = workerData as PackedWorkerData;
const session: InferenceSession = await openSession(settings);
let feeds: readonly Feeds[] = [];
let fetches: readonly string[] = [];

parentPort?.on('message', (request: PackedRequest) => {
  if (request.type === 'prepare') {
    feeds = request.batches.map((batch) => feedsOf(batch, usesTokenTypeIds));
    fetches = request.fetches;
    parentPort?.postMessage('done', []);
  } else {
    void take(request.next, request.step).then(() => parentPort?.postMessage('done', []));
  }
});

async function take(next: Int32Array, step: number): Promise<void> {
  for (let i = Atomics.add(next, 0, 1) * step; i < feeds.length; i = Atomics.add(next, 0, 1) * step) {
    await session.run(feeds[i]!, fetches);
  }
}
