/** `maxsimd index`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption } from './options.ts';

export function addIndex(program: Command, environment: ProgramEnvironment): void {
  const index = program.command('index').description('files of the indexes in the data directory');
  index
    .command('inspect')
    .description('show segments, sizes, waste and what is derived; also beside a running server')
    .argument('[index_id]', 'one index (default: all)')
    .addOption(jsonOption())
    .action(async (indexId: string | undefined) => {
      const [{ withIndexes }, { inspectIndexes }] = await Promise.all([
        import('../index/index-access.ts'),
        import('../index/index-inspect.ts'),
      ]);
      environment.report(await withIndexes(environment.config(), indexId, inspectIndexes));
    });
  index
    .command('verify')
    .description('check that the data directory is whole; also beside a running server')
    .argument('[index_id]', 'one index (default: all)')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nReads every byte, also where the service refuses to start. Exit code 1 when anything is missing, foreign or\n' +
        'damaged, with a list of it.',
    )
    .action(async (indexId: string | undefined) => {
      const { verifyIndexes } = await import('../index/index-verify.ts');
      environment.report(await verifyIndexes(environment.config(), indexId));
    });
  index
    .command('compact')
    .description('merge all segments of an index into one; refused while a server uses the data directory')
    .argument('[index_id]', 'one index (default: all)')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nNeeds as much free space as the live documents take. A server merges by itself: this is for the last\n' +
        'byte, or before a copy. What searches derive from segments is built when the server next opens the index.',
    )
    .action(async (indexId: string | undefined) => {
      const [{ withIndexesAlone }, { compactIndexes }] = await Promise.all([
        import('../index/index-access.ts'),
        import('../index/index-compact.ts'),
      ]);
      environment.report(await withIndexesAlone(environment.config(), indexId, compactIndexes));
    });
}
