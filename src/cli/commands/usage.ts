/** `maxsimd usage`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { CommandFailure } from '../failure.ts';
import {
  csvOption,
  day,
  endpointFrom,
  withServiceOptions,
  type ServiceOptions,
  type UsageOptions,
} from './options.ts';

export function addUsage(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('usage')
      .description('show usage and limits of the tenant for this month')
      .addOption(csvOption())
      .option('--from <day>', 'with --csv: first day (default: the first of this month)', day)
      .option('--to <day>', 'with --csv: last day (default: today, in UTC)', day),
    30,
  ).action(async ({ from, to, csv, ...options }: ServiceOptions & UsageOptions) => {
    const { showUsage, usageDaysCsv } = await import('../usage.ts');
    const endpoint = endpointFrom(options, environment);
    if (csv !== true && (from ?? to) !== undefined)
      throw new CommandFailure('usage_error', '--from and --to need --csv');
    environment.report(
      csv === true
        ? await usageDaysCsv(endpoint, { ...(from && { from }), ...(to && { to }) })
        : await showUsage(endpoint),
    );
  });
}
