/** A server process for all tests of a file, with a tenant. */
import { inject } from 'vitest';

import { operated } from '../commands/command-line.ts';
import { startNodes } from '../cluster/nodes.ts';
import { isClustered } from './launch.ts';
import { sharedService, type SharedServer } from '../shared-services.ts';
import { startServer, type ServerOptions, type ServerProcess } from './server.ts';
import { stageOf, type Stage } from '../stages/tenant-stage.ts';

/** A server of the file's own, for tests that set it up, stop it, or read what it prints. */
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

/** The server that many files share. */
export function useSharedStage(): Stage<SharedServer> {
  if (isClustered()) return useStage();
  return stageOf({
    start: () => sharedService(inject('sharedServicesUrl'), 'server'),
    end: () => Promise.resolve(),
    operated,
  });
}
