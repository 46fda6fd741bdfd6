/** `maxsimd import`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import {
  endpointFrom,
  positiveInteger,
  positiveNumber,
  withServiceOptions,
  type ServiceOptions,
} from './options.ts';

export function addImport(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('import')
      .description('send documents to an index, made if it is missing')
      .argument('<source>', 'FILE.jsonl, FILE.jsonl.gz or a BEIR directory')
      .requiredOption('--index <name>', 'name of the index')
      .option('--concurrency <n>', 'requests at once (default: what the tenant may)', positiveInteger)
      .option('--state <file>', 'where to keep the state of the import (default: beside the input)'),
    180,
  )
    .option('--retry-for <seconds>', 'how long to wait for an unavailable service', positiveNumber, 300)
    .addHelpText(
      'after',
      '\nLines are {"doc_id" | "_id" | "id", "text", "title"?, "metadata"?}; the text sent is title, a space, text.\n' +
        'An import that was cut off goes on where it was when the same command is given again; a changed file starts over.\n' +
        'Ends with the counts of documents done and failed; exit code 1 when any failed.',
    )
    .action(
      async (
        source: string,
        options: ServiceOptions & { index: string; concurrency?: number; state?: string; retryFor: number },
      ) => {
        const { importDocuments } = await import('../import/command.ts');
        environment.report(
          await importDocuments({
            endpoint: endpointFrom(options, environment),
            source,
            indexName: options.index,
            concurrency: options.concurrency,
            stateFile: options.state,
            retryMs: options.retryFor * 1000,
            stderr: environment.stderr,
          }),
        );
      },
    );
}
