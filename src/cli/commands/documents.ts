/** `maxsimd facets` and `maxsimd document`: their words. */
import type { Command } from 'commander';
import { confirmation } from '../confirm.ts';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, positiveInteger, withServiceOptions, type ServiceOptions } from './options.ts';

export function addFacets(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('facets')
      .description('count the documents of an index by the values of metadata fields')
      .argument('<field...>', 'metadata fields, at most 10; a.b is the field b of the object a')
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

interface UpdateOptions extends ServiceOptions {
  readonly index: string;
  readonly metadata?: string;
  readonly metadataMerge?: string;
}

export function addDocument(program: Command, environment: ProgramEnvironment): void {
  const document = program.command('document').description('change or delete stored documents');
  withServiceOptions(
    document
      .command('update')
      .description('change the metadata of a document; its text is not encoded again')
      .argument('<doc_id>', 'the id of the document')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--metadata <json>', 'a JSON object that replaces the stored one')
      .option(
        '--metadata-merge <json>',
        'a JSON object that is merged into the stored one (RFC 7396): null removes a field',
      ),
    150,
  ).action(async (docId: string, options: UpdateOptions) => {
    const { index, metadata, metadataMerge } = options;
    const { updateDocument } = await import('../index/update-document.ts');
    environment.report(
      await updateDocument(endpointFrom(options, environment), index, { docId, metadata, metadataMerge }),
    );
  });
  addDelete(document, environment);
}

interface DeleteOptions extends ServiceOptions {
  readonly index: string;
  readonly filter?: string;
  readonly where?: string;
  readonly dryRun?: true;
  readonly yes?: true;
}

function addDelete(document: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    document
      .command('delete')
      .description('delete the documents of an index that match')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--filter <json>', 'metadata fields that must match, as a JSON object')
      .option('--where <json>', 'conditions on metadata fields, as a JSON object')
      .option('--dry-run', 'only count the documents')
      .option('--yes', 'do not ask'),
    150,
  ).action(async (options: DeleteOptions) => {
    const { deleteDocuments } = await import('../index/delete-documents.ts');
    const endpoint = endpointFrom(options, environment);
    environment.report(await deleteDocuments(endpoint, options, confirmation(options, environment)));
  });
}
