/** `maxsimd facets`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, positiveInteger, withServiceOptions, type ServiceOptions } from './options.ts';

export function addFacets(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('facets')
      .description('count the documents of an index by the values of metadata fields')
      .argument('<field...>', 'top-level metadata fields, at most 10')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--limit <n>', 'number of values of each field, at most 100', positiveInteger)
      .option('--filter <json>', 'metadata fields that must match, as a JSON object')
      .option('--where <json>', 'conditions on metadata fields, as a JSON object'),
    150,
  ).action(
    async (
      fields: string[],
      options: ServiceOptions & { index: string; limit?: number; filter?: string; where?: string },
    ) => {
      const { index, limit, filter, where } = options;
      const { countValues } = await import('../index/facets.ts');
      environment.report(
        await countValues(endpointFrom(options, environment), index, { fields, limit, filter, where }),
      );
    },
  );
}
