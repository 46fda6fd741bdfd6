/** `maxsimd eval`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, positiveInteger, withServiceOptions, type ServiceOptions } from './options.ts';

export function addEval(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('eval')
      .description('measure quality and latency of an index over the queries of a BEIR directory')
      .argument('<directory>', 'with queries.jsonl[.gz] and qrels.tsv or qrels/test.tsv')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--candidate-k <n>', 'chunks scored exactly', positiveInteger, 500)
      .option('--concurrency <n>', 'searches at once', positiveInteger, 1),
    30,
  )
    .addHelpText(
      'after',
      '\nnDCG@10 and recall@100 as trec_eval and BEIR compute them: gains are the grades themselves (linear), the ideal\n' +
        'ranking is made of all judged documents. Only queries with judgements are run. A document counts once, at its\n' +
        "best chunk; a query's own document (equal ids) is left out. A search returns at most 100 chunks, so documents\n" +
        'of several chunks leave fewer than 100 documents for recall@100; the report says how many there were.\n' +
        'Latency is that of the request that was answered: waiting for a limit is left out. Percentiles by nearest rank.',
    )
    .action(
      async (
        directory: string,
        options: ServiceOptions & { index: string; candidateK: number; concurrency: number },
      ) => {
        const { evaluate } = await import('../evaluation/eval.ts');
        environment.report(
          await evaluate({
            endpoint: endpointFrom(options, environment),
            directory,
            indexName: options.index,
            candidateK: options.candidateK,
            concurrency: options.concurrency,
            stderr: environment.stderr,
          }),
        );
      },
    );
}
