/** `maxsimd cluster`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption } from './options.ts';

export function addCluster(program: Command, environment: ProgramEnvironment): void {
  program
    .command('cluster')
    .description('several nodes that share a catalog and an object store')
    .command('status')
    .description('nodes, segments by state, garbage that waits, and who merges')
    .addOption(jsonOption())
    .action(async () => {
      const { clusterStatus } = await import('../cluster/status.ts');
      environment.report(await clusterStatus(environment.config()));
    });
}
