/** `maxsimd index inspect` of what several nodes share: from the catalog, and from the headers and directories of objects. */
import type { Config } from '../../app/config.ts';
import { createEngine } from '../../index/engine/native.ts';
import { chosenIndexes, type IndexChoice } from '../catalog/names.ts';
import { inspectIndexes } from '../index/index-inspect.ts';
import type { CommandResult } from '../output.ts';
import { withCluster, withClusterWork } from './cluster-access.ts';
import { lookedAt, outlines } from './shared-index.ts';

/** `modelFolders` as `inspectIndexes`. */
export function inspectObjects(
  config: Config,
  choice: IndexChoice,
  modelFolders: readonly string[] | undefined,
): Promise<CommandResult> {
  return withCluster(config, (access) =>
    withClusterWork(config, 'inspecting', 'input_error', async (directory) => {
      const engine = createEngine({ threads: config.MAXSIMD_ENGINE_THREADS, kernel: config.MAXSIMD_KERNEL });
      try {
        return await inspectIndexes(
          {
            catalog: lookedAt(access.catalog),
            engine,
            blobs: outlines(access, directory),
            rows: await chosenIndexes(access.catalog, choice),
            exactTokenVectorsMax: config.MAXSIMD_EXACT_TOKEN_VECTORS,
            unsearchable:
              'memory and plans of searches are known where an index is open: not all of it was fetched',
          },
          modelFolders,
        );
      } finally {
        engine.close();
      }
    }),
  );
}
