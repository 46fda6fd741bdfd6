/** `maxsimd models`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { jsonOption } from './options.ts';

export function addModels(program: Command, environment: ProgramEnvironment): void {
  const models = program.command('models').description('models on this machine');
  models
    .command('list')
    .description('names and versions')
    .addOption(jsonOption())
    .action(async () => {
      const { listModels, modelsDirectoryOf } = await import('../models.ts');
      environment.report(await listModels(modelsDirectoryOf(environment.config())));
    });
  models
    .command('verify')
    .description('compare every file with the checksums of its manifest')
    .addOption(jsonOption())
    .action(async () => {
      const { modelsDirectoryOf, verifyModels } = await import('../models.ts');
      environment.report(await verifyModels(modelsDirectoryOf(environment.config())));
    });
}
