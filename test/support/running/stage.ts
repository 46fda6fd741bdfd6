/** Gives the tests of a file a server process and a tenant. */
import { inject } from 'vitest';

import { operated } from '../commands/command-line.ts';
import { startNodes } from '../cluster/nodes.ts';
import { isClustered } from './launch.ts';
import { sharedService, type SharedServer } from '../shared-services.ts';
import { startServer, type ServerOptions, type ServerProcess } from './server.ts';
import { stageOf, type Stage } from '../stages/tenant-stage.ts';

/** A server for this file alone, for tests that configure it, stop it, or read its output. */
export function useStage(options: ServerOptions = {}): Stage<ServerProcess> {
  return stageOf({
    start: () => (isClustered() ? startNodes(options) : startServer(options)),
    end: async (server) => {
      await server.stop();
      await server.scratch.remove();
    },
    operated,
  });
}

/** The server that many test files share. */
export function useSharedStage(): Stage<SharedServer> {
  if (isClustered()) return useStage();
  return stageOf({
    start: () => sharedService(inject('sharedServicesUrl'), 'server'),
    end: () => Promise.resolve(),
    operated,
  });
}
