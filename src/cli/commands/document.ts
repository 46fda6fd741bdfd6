/** `maxsimd document`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, withServiceOptions, type ServiceOptions } from './options.ts';

interface UpdateOptions extends ServiceOptions {
  readonly index: string;
  readonly metadata?: string;
  readonly metadataMerge?: string;
}

export function addDocument(program: Command, environment: ProgramEnvironment): void {
  const document = program.command('document').description('change stored documents');
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
}
