/** `maxsimd key`: its words. */
import type { Command } from 'commander';
import { confirmation } from '../confirm.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  administer,
  jsonOption,
  withAdminOptions,
  withRateOptions,
  type AdminOptions,
  type RateOptions,
} from './options.ts';

export function addKey(program: Command, environment: ProgramEnvironment): void {
  const key = program
    .command('key')
    .description('manage API keys; a tenant may have two at once, for rotation');
  withAdminOptions(
    withRateOptions(
      key
        .command('create')
        .description('create a key, which is shown only once')
        .argument('<tenant>', 'id or name')
        .option('--read-only', 'the key may not change or delete anything (403)'),
    ).addHelpText('after', '\nThe limits of the tenant hold beside those of the key.'),
  ).action(async (tenant: string, options: AdminOptions & RateOptions & { readOnly?: true }) => {
    const { createKey } = await import('../catalog/keys.ts');
    const access = options.readOnly === true ? 'read' : 'full';
    const { requestsPerMinute, maxConcurrentRequests } = options;
    const limits = { requestsPerMinute, maxConcurrentRequests };
    await administer(options, environment, (admin) => createKey(admin, tenant, access, limits));
  });
  withAdminOptions(
    key
      .command('list')
      .description('show the keys of a tenant, with revoked ones')
      .argument('<tenant>', 'id or name'),
  ).action(async (tenant: string, options: AdminOptions) => {
    const { listKeys } = await import('../catalog/keys.ts');
    await administer(options, environment, (admin) => listKeys(admin, tenant));
  });
  withAdminOptions(
    key
      .command('revoke')
      .description('revoke a key: requests with it are refused (401)')
      .argument('<key_id>'),
  ).action(async (keyId: string, options: AdminOptions) => {
    const { revokeKey } = await import('../catalog/keys.ts');
    await administer(options, environment, (admin) => revokeKey(admin, keyId));
  });
  key
    .command('reset')
    .description('revoke every key of every tenant, also if the key pepper is lost')
    .option('--yes', 'do not ask')
    .addOption(jsonOption())
    .addHelpText('after', '\nNo server may be running.')
    .action(async (options: { yes?: true }) => {
      const { assertDataDirectory } = await import('../catalog/catalog-access.ts');
      const { resetAllKeys } = await import('../catalog/keys.ts');
      const confirm = confirmation(options, environment);
      const config = environment.config();
      assertDataDirectory(config, 'key reset');
      environment.report(await resetAllKeys(config.MAXSIMD_DATA_DIR, confirm));
    });
}
