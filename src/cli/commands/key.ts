/** `maxsimd key`: its words. */
import type { Command } from 'commander';
import { keyNameLengthMax, liveKeysMax } from '../../catalog/contract.ts';
import { confirmation } from '../confirm.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  administer,
  jsonOption,
  nonBlank,
  withAdminOptions,
  withRateOptions,
  type AdminOptions,
  type RateOptions,
} from './options.ts';

export function addKey(program: Command, environment: ProgramEnvironment): void {
  const key = program.command('key').description(`manage API keys; a tenant may have ${liveKeysMax} at once`);
  withAdminOptions(
    withRateOptions(
      key
        .command('create')
        .description('create a key, which is shown only once')
        .argument('<tenant>', 'id or name')
        .option(
          '--name <name>',
          `name for people, at most ${keyNameLengthMax} characters, such as the program that has the key`,
          nonBlank,
        )
        .option('--read-only', 'the key may not change or delete anything (403)'),
    ).addHelpText('after', '\nThe limits of the tenant hold beside those of the key.'),
  ).action(
    async (tenant: string, options: AdminOptions & RateOptions & { name?: string; readOnly?: true }) => {
      const { createKey } = await import('../catalog/keys.ts');
      const { name, readOnly, requestsPerMinute, maxConcurrentRequests } = options;
      const access = readOnly === true ? 'read' : 'full';
      const choice = { name, access, requestsPerMinute, maxConcurrentRequests } as const;
      await administer(options, environment, (admin) => createKey(admin, tenant, choice));
    },
  );
  withAdminOptions(
    key
      .command('list')
      .description('show the keys of a tenant and when they were used, with revoked ones')
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
