/** `maxsimd audit`: its words. */
import type { Command } from 'commander';
import type { ProgramEnvironment } from './environment.ts';
import { administer, positiveInteger, withAdminOptions, type AdminOptions } from './options.ts';

const limitDefault = 100;

export function addAudit(program: Command, environment: ProgramEnvironment): void {
  withAdminOptions(
    program
      .command('audit')
      .description('show changes of tenants and keys, newest first')
      .option('--tenant <tenant>', 'only changes of this tenant: id or name')
      .option('--limit <n>', 'number of entries', positiveInteger, limitDefault),
  ).action(async (options: AdminOptions & { tenant?: string; limit: number }) => {
    const { showAudit } = await import('../catalog/audit.ts');
    await administer(options, environment, (admin) => showAudit(admin, options));
  });
}
