/** `maxsimd search`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, positiveInteger, withServiceOptions, type ServiceOptions } from './options.ts';

export function addSearch(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('search')
      .description('rank the chunks of an index for a query')
      .argument('<query>')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--top-k <n>', 'number of results', positiveInteger)
      .option('--candidate-k <n>', 'number of chunks that are scored exactly', positiveInteger)
      .option('--filter <json>', 'metadata fields that must match, as a JSON object')
      .option('--components', 'show the components of each score'),
    30,
  ).action(
    async (
      query: string,
      options: ServiceOptions & {
        index: string;
        topK?: number;
        candidateK?: number;
        filter?: string;
        components?: true;
      },
    ) => {
      const { index, topK, candidateK, filter, components } = options;
      const { parseFilter, search } = await import('../search.ts');
      environment.report(
        await search(endpointFrom(options, environment), index, {
          query,
          ...(topK !== undefined && { top_k: topK }),
          ...(candidateK !== undefined && { candidate_k: candidateK }),
          ...(filter !== undefined && { filter: parseFilter(filter) }),
          ...(components === true && { return_components: true }),
        }),
      );
    },
  );
}
