/** PostgreSQL and an object store for the tests of a file, and stages on them. */
import { afterAll, beforeAll } from 'vitest';
import type { RunningPostgres } from '../../../deploy/local/postgres.ts';
import type { RunningSeaweed } from '../../../deploy/local/seaweedfs.ts';
import { openNodeStage, type NodeStage } from './node-stage.ts';
import { serversMs, startTestPostgres, startTestSeaweed } from './servers.ts';

export interface StageServers {
  /** Only while tests and their hooks run. */
  readonly postgres: RunningPostgres;
  readonly weed: RunningSeaweed;
  openStage(): Promise<NodeStage>;
}

/** Starts them before the hooks and tests that come after this call. */
export function useStageServers(): StageServers {
  const servers = {} as { postgres: RunningPostgres; weed: RunningSeaweed };
  beforeAll(async () => {
    [servers.postgres, servers.weed] = await Promise.all([startTestPostgres(), startTestSeaweed()]);
  }, serversMs);
  afterAll(() => Promise.all([servers.postgres.stop(), servers.weed.stop()]));
  return Object.assign(servers, { openStage: () => openNodeStage(servers.postgres, servers.weed) });
}
