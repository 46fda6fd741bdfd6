/** `maxsimd import`: its words. */
import { Option, type Command } from 'commander';
import { exportNames, type ExportName } from '../import/exports/names.ts';
import type { Format } from '../import/sources/row-file.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  endpointFrom,
  names,
  nonBlank,
  positiveInteger,
  positiveNumber,
  withServiceOptions,
  type ServiceOptions,
} from './options.ts';

interface ImportWords extends ServiceOptions {
  readonly index: string;
  readonly model?: string;
  readonly concurrency?: number;
  readonly from?: ExportName;
  readonly format?: Format;
  readonly idField?: string;
  readonly autoId?: true;
  readonly textField?: string;
  readonly keepText?: string;
  readonly identifiers?: string;
  readonly cut?: true | number;
  readonly metadataFields?: readonly string[];
  readonly stringFields?: readonly string[] | 'all';
  readonly subset?: string;
  readonly split?: string;
  readonly state?: string;
  readonly retryFor?: number;
  readonly dryRun?: true;
  readonly json?: true;
}

export function addImport(program: Command, environment: ProgramEnvironment): void {
  const command = program
    .command('import')
    .description('send documents to an index, which is created where it is missing')
    .argument(
      '<source>',
      'file (JSON, CSV, Parquet, text), s3://BUCKET/KEY, directory (BEIR, dataset, texts), or - for standard input',
    )
    .requiredOption('--index <index>', 'name or id of the index')
    .option(
      '--model <name>',
      'model of a new index: NAME or NAME/VERSION (default: of the service)',
      nonBlank,
    )
    .option('--concurrency <n>', 'requests at once (default: the limit of the tenant)', positiveInteger);
  withServiceOptions(withReadingOptions(command), 180)
    .option(
      '--retry-for <seconds>',
      'how long to wait for an unavailable service (default: 300, and 5 while it was never reached)',
      positiveNumber,
    )
    .option('--dry-run', 'read everything, send nothing, and report what would be sent and refused')
    .addHelpText('after', help)
    .action(async (source: string, options: ImportWords) => {
      const { importDocuments } = await import('../import/command.ts');
      const { retryFor, stringFields } = options;
      environment.report(
        await importDocuments({
          endpoint: options.dryRun === true ? undefined : endpointFrom(options, environment),
          choice: {
            source,
            format: options.format,
            subset: options.subset,
            split: options.split,
            fields: {
              from: options.from,
              id: options.idField,
              autoId: options.autoId,
              text: options.textField,
              keepText: options.keepText,
              identifiers: options.identifiers,
              cut: options.cut,
              metadata: options.metadataFields,
              strings: stringFields,
            },
          },
          index: { name: options.index, model: options.model, matchField: options.identifiers },
          concurrency: options.concurrency,
          stateFile: options.state,
          stateHome: environment.stateHome,
          retryMs: retryFor === undefined ? undefined : retryFor * 1000,
          showsPreview: options.json !== true,
          signal: environment.interruption(),
          stdin: environment.stdin,
          stderr: environment.stderr,
        }),
      );
    });
}

function withReadingOptions(command: Command): Command {
  return command
    .addOption(new Option('--from <library>', 'library or program that wrote the input').choices(exportNames))
    .addOption(new Option('--format <format>', 'format of the input (default: by its name)').choices(formats))
    .option(
      '--id-field <name>',
      'field with the identifier, such as id or meta.id (default: doc_id, _id or id)',
      nonBlank,
    )
    .option('--auto-id', 'make an id of the content for rows that have none')
    .option(
      '--text-field <name>',
      'field with the text, such as body or payload.body (default: text)',
      nonBlank,
    )
    .option(
      '--keep-text <name>',
      'metadata field that keeps the text, so that searches show passages',
      nonBlank,
    )
    .option(
      '--identifiers <name>',
      'metadata field that gets the words that look like identifiers, so that searches match them',
      nonBlank,
    )
    .option(
      '--cut [bytes]',
      'cut long documents into several (default: at the most that a document may hold)',
      positiveInteger,
    )
    .option(
      '--metadata-fields <names>',
      'fields to send as metadata, separated by commas (default: all)',
      names,
    )
    .option(
      '--string-fields <names>',
      'CSV columns and fields of front matter that stay strings, separated by commas; "all" for all',
      namesOrAll,
    )
    .option('--subset <name>', 'subset of a dataset directory', nonBlank)
    .option('--split <name>', 'split of a dataset directory; "all" for all', nonBlank)
    .option(
      '--state <file>',
      'file for the state of the import (default: in the state directory of the user)',
    );
}

const help = `
A document has doc_id (or _id, or id), text, title and metadata. The text that is sent is title, a space, text. The title
and all other fields become metadata too, and the end lists them. A document with expires_at expires then. The last of
several documents with the same id stays.
--keep-text puts the text that is sent into a metadata field, where searches find their passages. Metadata have 16 KiB.
--identifiers picks words of 3 to 64 characters with a digit, an underscore, an inner dot or camelCase, such as E11.65 or
read_file: each once, the first 64. They are stored then, as the text is not. A new index has the field in match_fields.
--cut makes documents ID#1, ID#2, ... of a longer one: it cuts at headings, paragraphs and sentences, and adds part_of, part
and headings to the metadata. Parts of an earlier import that are no longer there are deleted.
Arrays of more than 64 numbers, and the text again, stay out of metadata unless --metadata-fields names them.
JSON is an object a line, or one array. CSV has a header line. Its columns of numbers and booleans get these types, and
the end lists them. A dataset directory is one of Hugging Face: README.md, dataset_info.json and shards of Parquet, JSONL
or CSV. In a directory of texts, each .md, .txt or similar file is a document, and its path is the id; others are counted.
The front matter of Markdown becomes title and metadata. s3://BUCKET/KEY is read with the endpoint, region and
credentials of the AWS variables.
--from reads what a library exports. Its names of the id, the text and the metadata hold, unless the options say otherwise,
and vectors are left out. A title is metadata then, and so is expires_at. An unknown form is refused with those that are known.
The input is checked before an index is created, and the fields and their types are listed. --dry-run sends nothing.
When an import was cut off, give the same command again: it goes on from there. A changed input starts over.
Ends with the counts of documents done and failed; exit code 1 when any failed, 130 after Ctrl-C.`;

const formats = ['jsonl', 'csv', 'parquet', 'text'] satisfies readonly Format[];

function namesOrAll(text: string): readonly string[] | 'all' {
  return text.trim() === 'all' ? 'all' : names(text);
}
