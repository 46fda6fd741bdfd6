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
      const { listModels } = await import('../models.ts');
      environment.report(await listModels(await folders()));
    });
  models
    .command('verify')
    .description('compare every file with the checksums of its manifest')
    .addOption(jsonOption())
    .action(async () => {
      const { verifyModels } = await import('../models.ts');
      environment.report(await verifyModels(await folders()));
    });
}
