/** Opens pools of inference sessions: real worker threads on the CPU. */
import { onTestFinished } from 'vitest';
import type { ServedModel } from '../../../src/encoder/model/served-model.ts';
import { SessionPool } from '../../../src/encoder/inference/session-pool.ts';

/** Opens a pool that is closed at the end of the test. Each worker has one thread, and all cores count as free. */
export async function sessionsOfTest(
  model: ServedModel,
  workers = 1,
  freeCores = () => Infinity,
): Promise<SessionPool> {
  const pool = await SessionPool.open({
    models: [model.session],
    provider: 'cpu',
    deviceId: 0,
    threads: workers,
    workers,
    stuckMs: 60_000,
    freeCores,
    onFatal: (reason) => {
      throw new Error(reason);
    },
  });
  onTestFinished(async () => pool.close());
  return pool;
}
