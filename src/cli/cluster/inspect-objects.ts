/** `maxsimd index inspect` for a cluster, from the catalog, and from the headers and directories of objects. */
import type { Config } from '../../app/config.ts';
import { chosenIndexes, type IndexChoice } from '../catalog/names.ts';
import { withEngine } from '../index/index-access.ts';
import { inspectIndexes } from '../index/index-inspect.ts';
import type { CommandResult } from '../output.ts';
import { withCluster, withClusterWork } from './cluster-access.ts';
import { lookedAt, outlines } from './shared-index.ts';

/** `modelFolders` is the same as for `inspectIndexes`. */
export function inspectObjects(
  config: Config,
  choice: IndexChoice,
  modelFolders: readonly string[] | undefined,
): Promise<CommandResult> {
  return withCluster(config, (access) =>
    withClusterWork(config, 'inspecting', 'input_error', (directory) =>
      withEngine(config, async (engine) => {
        const inspected = {
          catalog: lookedAt(access.catalog),
          engine,
          blobs: outlines(access, directory),
          rows: await chosenIndexes(access.catalog, choice),
          exactTokenVectorsMax: config.exactTokenVectorsMax,
          unsearchable: 'not all of it was fetched, so memory and the plan of a search are unknown',
        };
        return inspectIndexes(inspected, modelFolders);
      }),
    ),
  );
}
