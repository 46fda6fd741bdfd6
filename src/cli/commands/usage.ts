/** `maxsimd usage`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, withServiceOptions, type ServiceOptions } from './options.ts';

export function addUsage(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program.command('usage').description('show usage and limits of the tenant for this month'),
    30,
  ).action(async (options: ServiceOptions) => {
    const { showUsage } = await import('../usage.ts');
    environment.report(await showUsage(endpointFrom(options, environment)));
  });
}
