/** `maxsimd import`: its words. */
import { Option, type Command } from 'commander';
import type { Format } from '../import/sources/row-file.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  endpointFrom,
  nonBlank,
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
      .argument('<source>', 'JSON, CSV or Parquet file, BEIR or dataset directory, - for standard input')
      .requiredOption('--index <index>', 'name or id of the index')
      .option(
        '--model <name>',
        'of an index that is made: NAME or NAME/VERSION (default: of the service)',
        nonBlank,
      )
      .option('--concurrency <n>', 'requests at once (default: what the tenant may)', positiveInteger)
      .addOption(new Option('--format <format>', 'of the input (default: by its name)').choices(formats))
      .option('--id-field <name>', 'field with the identifier (default: doc_id, _id or id)', nonBlank)
      .option('--text-field <name>', 'field with the text (default: text)', nonBlank)
      .option(
        '--metadata-fields <names>',
        'further fields to send as metadata, comma between (default: all)',
        names,
      )
      .option(
        '--string-fields <names>',
        'CSV columns whose values stay strings, comma between; "all" for all',
        namesOrAll,
      )
      .option('--subset <name>', 'of a dataset directory with several', nonBlank)
      .option('--split <name>', 'of a dataset directory with several; "all" for all', nonBlank)
      .option(
        '--state <file>',
        'where to keep the state of the import (default: in the state directory of the user)',
      ),
    180,
  )
    .option(
      '--retry-for <seconds>',
      'how long to wait for an unavailable service (default: 300, and 5 while it was never reached)',
      positiveNumber,
    )
    .addHelpText(
      'after',
      '\nA document has doc_id (or _id, or id), text, title and metadata; the text sent is title, a space, text. The title and\n' +
        'all other fields become metadata too, and the end lists them. Of documents with the same id the last one stays.\n' +
        'JSON is an object a line, or one array. CSV has a header line; its columns of numbers and booleans get these types, and the\n' +
        'end lists them. A dataset directory is one of Hugging Face: README.md, dataset_info.json and shards of Parquet, JSONL or CSV.\n' +
        'The input is looked at before anything is created.\n' +
        'An import that was cut off goes on where it was when the same command is given again; a changed input starts over.\n' +
        'Ends with the counts of documents done and failed; exit code 1 when any failed, 130 after Ctrl-C.',
    )
    .action(
      async (
        source: string,
        options: ServiceOptions & {
          index: string;
          model?: string;
          concurrency?: number;
          format?: Format;
          idField?: string;
          textField?: string;
          metadataFields?: readonly string[];
          stringFields?: readonly string[] | 'all';
          subset?: string;
          split?: string;
          state?: string;
          retryFor?: number;
        },
      ) => {
        const { importDocuments } = await import('../import/command.ts');
        environment.report(
          await importDocuments({
            endpoint: endpointFrom(options, environment),
            choice: {
              source,
              format: options.format,
              subset: options.subset,
              split: options.split,
              fields: {
                id: options.idField,
                text: options.textField,
                metadata: options.metadataFields,
                strings: options.stringFields,
              },
            },
            index: { name: options.index, model: options.model },
            concurrency: options.concurrency,
            stateFile: options.state,
            stateHome: environment.stateHome,
            retryMs: options.retryFor === undefined ? undefined : options.retryFor * 1000,
            signal: environment.interruption(),
            stdin: environment.stdin,
            stderr: environment.stderr,
          }),
        );
      },
    );
}

const formats = ['jsonl', 'csv', 'parquet'] satisfies readonly Format[];

function names(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

function namesOrAll(text: string): readonly string[] | 'all' {
  return text.trim() === 'all' ? 'all' : names(text);
}
