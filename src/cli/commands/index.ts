/** `maxsimd index`: its words. */
import type { Command } from 'commander';
import { modelFoldersOf } from '../../app/config.ts';
import { confirmation } from '../confirm.ts';
import { CommandFailure } from '../failure.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  endpointFrom,
  jsonOption,
  names,
  nonBlank,
  withServiceOptions,
  type ServiceOptions,
} from './options.ts';

interface FileOptions {
  readonly tenant?: string;
}

export function addIndex(program: Command, environment: ProgramEnvironment): void {
  const index = program
    .command('index')
    .description('manage indexes, and check their files')
    .addHelpText(
      'after',
      '\n`list`, `create`, `update`, `rename`, `swap` and `delete` call the service with the API key of a tenant. The other\n' +
        'commands work on the data directory of this machine, or on a cluster if MAXSIMD_CATALOG_URL is set.',
    );
  addServed(index, environment);
  withFileOptions(
    index
      .command('inspect')
      .description('show segments, sizes, dead records and derived data; a server may be running'),
  ).action(async (name: string | undefined, { tenant }: FileOptions) => {
    const config = environment.config();
    const choice = { index: name, tenant };
    const modelFolders = config.MAXSIMD_ENCODERS.length > 0 ? undefined : modelFoldersOf(config);
    const [{ withIndexes }, { inspectIndexes }] = await Promise.all([
      import('../index/index-access.ts'),
      import('../index/index-inspect.ts'),
    ]);
    environment.report(await withIndexes(config, choice, (access) => inspectIndexes(access, modelFolders)));
  });
  withFileOptions(
    index
      .command('verify')
      .description('check that the data directory or the cluster is complete; a server may be running'),
  )
    .addHelpText(
      'after',
      '\nReads every byte, and also works if the service refuses to start. If anything is missing, foreign or damaged, it is\n' +
        'listed, and the exit code is 1.',
    )
    .action(async (name: string | undefined, { tenant }: FileOptions) => {
      const { verifyIndexes } = await import('../index/index-verify.ts');
      environment.report(await verifyIndexes(environment.config(), { index: name, tenant }));
    });
  withFileOptions(
    index.command('compact').description('merge all segments of an index into one; no server may be running'),
  )
    .addHelpText(
      'after',
      '\nNeeds as much free space as the live documents take. A server merges by itself, so this is only useful to save the\n' +
        'last bytes, or before a copy. The server rebuilds derived data when it next opens the index.',
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
    .argument('[index]', 'id or name of an index (default: all)')
    .option('--tenant <tenant>', 'only indexes of this tenant: id or name')
    .addOption(jsonOption());
}

/** Commands that use the HTTP API. */
function addServed(index: Command, environment: ProgramEnvironment): void {
  withServiceOptions(index.command('list').description('show the indexes of the tenant'), 30).action(
    async (options: ServiceOptions) => {
      const { listIndexes } = await import('../index/served-indexes.ts');
      environment.report(await listIndexes(endpointFrom(options, environment)));
    },
  );
  addCreate(index, environment);
  addUpdate(index, environment);
  withServiceOptions(
    index
      .command('rename')
      .description('rename an index of the tenant')
      .argument('<index>', 'name or id')
      .argument('<name>', 'new name', nonBlank),
    30,
  ).action(async (name: string, newName: string, options: ServiceOptions) => {
    const { renameIndex } = await import('../index/served-indexes.ts');
    environment.report(await renameIndex(endpointFrom(options, environment), name, newName));
  });
  withServiceOptions(
    index
      .command('swap')
      .description('exchange the names of two indexes of the tenant, in one step')
      .argument('<index>', 'name or id')
      .argument('<other>', 'name or id'),
    30,
  )
    .addHelpText(
      'after',
      '\nFill a new index, then swap names: searches by name use the new index at once. The same command undoes it.',
    )
    .action(async (name: string, otherName: string, options: ServiceOptions) => {
      const { swapIndexes } = await import('../index/served-indexes.ts');
      environment.report(await swapIndexes(endpointFrom(options, environment), name, otherName));
    });
  withServiceOptions(
    index
      .command('delete')
      .description('erase an index of the tenant with all its documents')
      .argument('<index>', 'name or id')
      .option('--yes', 'do not ask'),
    30,
  ).action(async (name: string, options: ServiceOptions & { yes?: true }) => {
    const { deleteIndex } = await import('../index/served-indexes.ts');
    const confirm = confirmation(options, environment);
    environment.report(await deleteIndex(endpointFrom(options, environment), name, confirm));
  });
}

const matchFieldsOption = '--match-fields <names>';

function addCreate(index: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    index
      .command('create')
      .description('create an index of the tenant')
      .argument('<name>', 'name', nonBlank)
      .option('--model <model>', 'NAME or NAME/VERSION (default: that of the service)')
      .option(matchFieldsOption, 'metadata fields that words of a query match, separated by commas', names),
    30,
  ).action(async (name: string, options: ServiceOptions & { model?: string; matchFields?: string[] }) => {
    const { createIndex } = await import('../index/served-indexes.ts');
    const { model, matchFields } = options;
    environment.report(await createIndex(endpointFrom(options, environment), { name, model, matchFields }));
  });
}

function addUpdate(index: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    index
      .command('update')
      .description('set which metadata fields of an index words of a query match')
      .argument('<index>', 'name or id')
      .option(matchFieldsOption, 'these fields, separated by commas, in place of those of before', names)
      .option('--no-match-fields', 'none'),
    30,
  )
    .addHelpText(
      'after',
      '\nDocuments that were written before match once their metadata are written again (`document update`).',
    )
    .action(async (name: string, options: ServiceOptions & { matchFields?: string[] | boolean }) => {
      const { matchFields } = options;
      if (matchFields === undefined || matchFields === true)
        throw new CommandFailure('usage_error', 'needs --match-fields NAMES or --no-match-fields');
      const { setMatchFields } = await import('../index/served-indexes.ts');
      const wanted = matchFields === false ? [] : matchFields;
      environment.report(await setMatchFields(endpointFrom(options, environment), name, wanted));
    });
}
