/** `maxsimd eval`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, positiveInteger, withServiceOptions, type ServiceOptions } from './options.ts';

export function addEval(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('eval')
      .description('measure quality and latency of an index over the queries of a BEIR directory')
      .argument('<directory>', 'directory with queries.jsonl[.gz], and qrels.tsv or qrels/test.tsv')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--candidate-k <n>', 'number of chunks that are scored exactly', positiveInteger, 500)
      .option('--concurrency <n>', 'searches at once', positiveInteger, 1),
    30,
  )
    .addHelpText(
      'after',
      '\nComputes nDCG@10 and recall@100 as trec_eval and BEIR do. The gain is the grade (linear), and the ideal ranking has\n' +
        'all judged documents. Only queries with judgements are run. A document counts once, at its best chunk. The document\n' +
        'of a query itself (same id) is left out. A search returns at most 100 chunks, so documents of several chunks leave\n' +
        'fewer than 100 documents for recall@100, and the report gives their number. Latency is the time of the request that\n' +
        'was answered, without waits for a limit. Percentiles are by nearest rank.',
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
