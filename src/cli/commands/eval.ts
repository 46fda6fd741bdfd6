/** `maxsimd eval`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import {
  endpointFrom,
  nonBlank,
  positiveInteger,
  withServiceOptions,
  type ServiceOptions,
} from './options.ts';

interface EvalWords extends ServiceOptions {
  readonly index: string;
  readonly split?: string;
  readonly qrels?: string;
  readonly candidateK: number;
  readonly concurrency: number;
}

export function addEval(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('eval')
      .description('measure quality and latency of an index over judged queries')
      .argument('<directory>', 'directory in the layout of BEIR, or of a dataset of MTEB')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--split <name>', 'judgements of this split (default: test, or else dev)', nonBlank)
      .option('--qrels <file>', 'file with the judgements (default: in the directory)', nonBlank)
      .option('--candidate-k <n>', 'number of chunks that are scored exactly', positiveInteger, 500)
      .option('--concurrency <n>', 'searches at once', positiveInteger, 1),
    30,
  )
    .addHelpText(
      'after',
      '\nA directory of BEIR holds queries.jsonl[.gz], and qrels.tsv, qrels/test.tsv or qrels/dev.tsv. In a dataset of MTEB,\n' +
        'the queries are the subset queries, and the judgements the subset qrels or default. Judgements are read in the forms\n' +
        'of BEIR, TREC (four columns), ir_datasets and MTEB (Parquet, JSON lines). A line that cannot be read is an error.\n' +
        '\nComputes nDCG@10 and recall@100 as trec_eval and BEIR do. The gain is the grade (linear), and the ideal ranking has\n' +
        'all judged documents. Only queries with judgements are run. A query whose text the service refuses counts 0. A document\n' +
        'counts once, at its best chunk. The document of a query itself (same id) is left out unless it is judged. A search\n' +
        'returns at most 100 chunks, so documents of several chunks leave fewer than 100 documents for recall@100, and the\n' +
        'report gives their number. Latency is the time of the request that was answered, without waits for a limit.\n' +
        'Percentiles are by nearest rank.',
    )
    .action(async (directory: string, options: EvalWords) => {
      const { evaluate } = await import('../evaluation/eval.ts');
      environment.report(
        await evaluate({
          endpoint: endpointFrom(options, environment),
          choice: { directory, split: options.split, qrels: options.qrels },
          indexName: options.index,
          candidateK: options.candidateK,
          concurrency: options.concurrency,
          stderr: environment.stderr,
        }),
      );
    });
}
