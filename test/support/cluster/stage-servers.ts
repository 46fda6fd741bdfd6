/** Opens stages with nodes on the PostgreSQL and the object store that many test files share. */
import { beforeAll, inject } from 'vitest';
import { sharedService, type SharedServices } from '../shared-services.ts';
import { openNodeStage, type NodeStage } from './node-stage.ts';
import { serversMs } from './servers.ts';

export interface StageServers {
  /** Set while tests and their hooks run. */
  readonly postgres: SharedServices['postgres'];
  readonly weed: SharedServices['seaweed'];
  openStage(): Promise<NodeStage>;
}

/** The servers are ready before the hooks and tests that are declared after this call. */
export function useStageServers(): StageServers {
  const servers = {} as { postgres: SharedServices['postgres']; weed: SharedServices['seaweed'] };
  beforeAll(async () => {
    const url = inject('sharedServicesUrl');
    servers.postgres = await sharedService(url, 'postgres');
    servers.weed = await sharedService(url, 'seaweed');
  }, serversMs);
  return Object.assign(servers, { openStage: () => openNodeStage(servers.postgres, servers.weed) });
}
