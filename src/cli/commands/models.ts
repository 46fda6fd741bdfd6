/** `maxsimd models`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption } from './options.ts';

export function addModels(program: Command, environment: ProgramEnvironment): void {
  const models = program.command('models').description('models on this machine');
  const folders = async (): Promise<readonly [string, string]> => {
    const { modelFoldersOf } = await import('../../app/config.ts');
    return modelFoldersOf(environment.config());
  };
  models
    .command('list')
    .description('names and versions')
    .addOption(jsonOption())
    .action(async () => {
      const { listModels } = await import('../models/list.ts');
      environment.report(await listModels(await folders()));
    });
  models
    .command('verify')
    .description('compare every file with the checksums of its manifest')
    .addOption(jsonOption())
    .action(async () => {
      const { verifyModels } = await import('../models/list.ts');
      environment.report(await verifyModels(await folders()));
    });
  models
    .command('add')
    .description('check a ColBERT export and install it beside the other models')
    .argument('<directory|file>', 'a directory as pylate-onnx-export and next-plaid write it, or its graph')
    .option('--name <name>', 'default: the name of the directory')
    .option('--version <version>', 'default: 1, or the one after the newest')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nThe model goes to MAXSIMD_MODELS_DIR (default: models in the data directory), where a running server finds it.\n' +
        'It is run before: graph, tokenizer and prefixes must agree, vectors be of length 1 and independent of their batch.',
    )
    .action(async (given: string, options: { readonly name?: string; readonly version?: string }) => {
      const { addModel } = await import('../models/add.ts');
      environment.report(await addModel(await folders(), given, options));
    });
}
