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
    .description('show the installed models')
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
    .argument('<directory|file>', 'an export of pylate-onnx-export or next-plaid, or a graph in it')
    .option('--name <name>', 'name of the model (default: name of the directory)')
    .option('--version <version>', 'version of the model (default: 1, or the one after the newest)')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nThe model is installed in MAXSIMD_MODELS_DIR (default: models in the data directory), and a running server finds it\n' +
        'there. The command runs the model first. Graph, tokenizer and prefixes must fit together. The vectors of a text must\n' +
        'have length 1 and must not depend on other texts.',
    )
    .action(async (given: string, options: { readonly name?: string; readonly version?: string }) => {
      const { addModel } = await import('../models/add.ts');
      environment.report(await addModel(await folders(), given, options));
    });
}
