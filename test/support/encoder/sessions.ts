/** Sessions for the tests: one real worker on the CPU. */
import { onTestFinished } from 'vitest';
import type { ServedModel } from '../../../src/encoder/model/served-model.ts';
import { SessionPool } from '../../../src/encoder/inference/session-pool.ts';

/** Closed at the end of the test. */
export async function sessionsOfTest(model: ServedModel): Promise<SessionPool> {
  const pool = await SessionPool.open({
    models: [model.session],
    provider: 'cpu',
    deviceId: 0,
    threads: 1,
    workers: 1,
    stuckMs: 60_000,
    onFatal: (reason) => {
      throw new Error(reason);
    },
  });
  onTestFinished(async () => pool.close());
  return pool;
}
