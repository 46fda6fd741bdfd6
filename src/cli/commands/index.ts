/** `maxsimd index`: its words. */
import type { Command } from 'commander';
import { isClustered, modelFoldersOf } from '../../app/config.ts';
import { confirmation } from '../confirm.ts';
import type { ProgramEnvironment } from './environment.ts';
import { endpointFrom, jsonOption, nonBlank, withServiceOptions, type ServiceOptions } from './options.ts';

interface FileOptions {
  readonly tenant?: string;
}

export function addIndex(program: Command, environment: ProgramEnvironment): void {
  const index = program
    .command('index')
    .description('indexes of a tenant, and their files in the data directory')
    .addHelpText(
      'after',
      '\n`list`, `rename`, `swap` and `delete` ask the service, with the API key of a tenant. The others work on the files of this machine,\nor on what several nodes share, where MAXSIMD_CATALOG_URL says so.',
    );
  addServed(index, environment);
  withFileOptions(
    index
      .command('inspect')
      .description('show segments, sizes, waste and what is derived; also beside a running server'),
  ).action(async (name: string | undefined, { tenant }: FileOptions) => {
    const config = environment.config();
    const choice = { index: name, tenant };
    const modelFolders = config.MAXSIMD_ENCODERS.length > 0 ? undefined : modelFoldersOf(config);
    if (isClustered(config)) {
      const { inspectObjects } = await import('../cluster/inspect-objects.ts');
      environment.report(await inspectObjects(config, choice, modelFolders));
      return;
    }
    const [{ withIndexes }, { inspectIndexes }] = await Promise.all([
      import('../index/index-access.ts'),
      import('../index/index-inspect.ts'),
    ]);
    environment.report(await withIndexes(config, choice, (access) => inspectIndexes(access, modelFolders)));
  });
  withFileOptions(
    index
      .command('verify')
      .description(
        'check that the data directory, or what nodes share, is whole; also beside a running server',
      ),
  )
    .addHelpText(
      'after',
      '\nReads every byte, also where the service refuses to start. Exit code 1 when anything is missing, foreign or\n' +
        'damaged, with a list of it.',
    )
    .action(async (name: string | undefined, { tenant }: FileOptions) => {
      const config = environment.config();
      const choice = { index: name, tenant };
      if (isClustered(config)) {
        const { verifyObjects } = await import('../cluster/verify-objects.ts');
        environment.report(await verifyObjects(config, choice));
        return;
      }
      const { verifyIndexes } = await import('../index/index-verify.ts');
      environment.report(await verifyIndexes(config, choice));
    });
  withFileOptions(
    index
      .command('compact')
      .description('merge all segments of an index into one; refused while a server uses the data directory'),
  )
    .addHelpText(
      'after',
      '\nNeeds as much free space as the live documents take. A server merges by itself: this is for the last\n' +
        'byte, or before a copy. What searches derive from segments is built when the server next opens the index.',
    )
    .action(async (name: string | undefined, { tenant }: FileOptions) => {
      const [{ withIndexesAlone }, { compactIndexes }] = await Promise.all([
        import('../index/index-access.ts'),
        import('../index/index-compact.ts'),
      ]);
      environment.report(
        await withIndexesAlone(environment.config(), { index: name, tenant }, compactIndexes),
      );
    });
}

function withFileOptions(command: Command): Command {
  return command
    .argument('[index]', 'id or name of one (default: all)')
    .option('--tenant <tenant>', 'of this tenant alone, by id or name')
    .addOption(jsonOption());
}

/** Through the HTTP API: what the tenant sees. */
function addServed(index: Command, environment: ProgramEnvironment): void {
  withServiceOptions(index.command('list').description('indexes of the tenant of the API key'), 30).action(
    async (options: ServiceOptions) => {
      const { listIndexes } = await import('../index/served-indexes.ts');
      environment.report(await listIndexes(endpointFrom(options, environment)));
    },
  );
  withServiceOptions(
    index
      .command('rename')
      .description('give an index of the tenant of the API key another name')
      .argument('<index>', 'name or id')
      .argument('<name>', 'the new one', nonBlank),
    30,
  ).action(async (name: string, newName: string, options: ServiceOptions) => {
    const { renameIndex } = await import('../index/served-indexes.ts');
    environment.report(await renameIndex(endpointFrom(options, environment), name, newName));
  });
  withServiceOptions(
    index
      .command('swap')
      .description('give two indexes of the tenant of the API key the name of each other, in one step')
      .argument('<index>', 'name or id')
      .argument('<other>', 'name or id'),
    30,
  )
    .addHelpText(
      'after',
      '\nAn index that was filled anew beside the one that serves goes live this way. The same command takes it back.',
    )
    .action(async (name: string, otherName: string, options: ServiceOptions) => {
      const { swapIndexes } = await import('../index/served-indexes.ts');
      environment.report(await swapIndexes(endpointFrom(options, environment), name, otherName));
    });
  withServiceOptions(
    index
      .command('delete')
      .description('erase an index of the tenant of the API key, with its documents')
      .argument('<index>', 'name or id')
      .option('--yes', 'do not ask'),
    30,
  ).action(async (name: string, options: ServiceOptions & { yes?: true }) => {
    const { deleteIndex } = await import('../index/served-indexes.ts');
    const confirm = confirmation(options, environment);
    environment.report(await deleteIndex(endpointFrom(options, environment), name, confirm));
  });
}
