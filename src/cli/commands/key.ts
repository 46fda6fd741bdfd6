/** `maxsimd key`: its words. */
import type { Command } from 'commander';
import { assertDataDirectory, withCatalog } from '../catalog/catalog-access.ts';
import type { ProgramEnvironment } from './environment.ts';
import { confirmation, jsonOption } from './options.ts';

export function addKey(program: Command, environment: ProgramEnvironment): void {
  const key = program.command('key').description('API keys of a tenant; two may live at once, for rotation');
  key
    .command('create')
    .description('make a key; it is shown this once')
    .argument('<tenant>', 'id or name')
    .addOption(jsonOption())
    .action(async (tenant: string) => {
      const { createKey } = await import('../catalog/keys.ts');
      environment.report(
        await withCatalog(environment.config(), ({ catalog, newApiKey }) =>
          createKey(catalog, tenant, newApiKey),
        ),
      );
    });
  key
    .command('list')
    .description('keys of a tenant, revoked ones included')
    .argument('<tenant>', 'id or name')
    .addOption(jsonOption())
    .action(async (tenant: string) => {
      const { listKeys } = await import('../catalog/keys.ts');
      environment.report(await withCatalog(environment.config(), ({ catalog }) => listKeys(catalog, tenant)));
    });
  key
    .command('revoke')
    .description('refuse a key from now on (401)')
    .argument('<key_id>')
    .addOption(jsonOption())
    .action(async (keyId: string) => {
      const { revokeKey } = await import('../catalog/keys.ts');
      environment.report(await withCatalog(environment.config(), ({ catalog }) => revokeKey(catalog, keyId)));
    });
  key
    .command('reset')
    .description('make every key of every tenant void, also where the key pepper is lost')
    .option('--yes', 'do not ask')
    .addOption(jsonOption())
    .addHelpText('after', '\nRefused while a server uses the data directory.')
    .action(async (options: { yes?: true }) => {
      const { resetAllKeys } = await import('../catalog/keys.ts');
      const confirm = await confirmation(options, environment);
      const config = environment.config();
      assertDataDirectory(config, 'key reset');
      environment.report(await resetAllKeys({ directory: config.MAXSIMD_DATA_DIR, confirm }));
    });
}
