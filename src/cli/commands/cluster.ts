/** `maxsimd cluster`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption } from './options.ts';

export function addCluster(program: Command, environment: ProgramEnvironment): void {
  program
    .command('cluster')
    .description('commands for several nodes that share data')
    .command('status')
    .description('show the nodes, the segments by state, and the node that merges each index')
    .addOption(jsonOption())
    .action(async () => {
      const { clusterStatus } = await import('../cluster/status.ts');
      environment.report(await clusterStatus(environment.config()));
    });
}
