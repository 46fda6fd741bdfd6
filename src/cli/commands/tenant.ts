/** `maxsimd tenant`: its words. */
import type { Command } from 'commander';
import type { TenantLimits } from '../../catalog/contract.ts';
import { withCatalog } from '../catalog/catalog-access.ts';
import type { ProgramEnvironment } from './environment.ts';
import { confirmation, countFromZero, jsonOption, nonBlank, positiveInteger, tokenCount } from './options.ts';

export function addTenant(program: Command, environment: ProgramEnvironment): void {
  const group = program.command('tenant').description('tenants of the data directory');
  withLimitOptions(
    group
      .command('create')
      .description('make a tenant and its first API key')
      .requiredOption('--name <name>', 'name of the tenant', nonBlank),
  )
    .addOption(jsonOption())
    .action(async (options: LimitOptions & { name: string }) => {
      const { createTenant } = await import('../catalog/tenants.ts');
      environment.report(
        await withCatalog(
          environment.config(),
          ({ catalog, newApiKey }) =>
            createTenant(catalog, { name: options.name, limits: limitsOf(options), newApiKey }),
          { create: true },
        ),
      );
    });
  group
    .command('list')
    .description('all tenants')
    .addOption(jsonOption())
    .action(async () => {
      const { listTenants } = await import('../catalog/tenants.ts');
      environment.report(await withCatalog(environment.config(), ({ catalog }) => listTenants(catalog)));
    });
  for (const [name, suspended] of [
    ['suspend', true],
    ['resume', false],
  ] as const) {
    group
      .command(name)
      .description(suspended ? 'refuse all requests of a tenant (403)' : 'lift a suspension')
      .argument('<tenant>', 'id or name')
      .addOption(jsonOption())
      .action(async (tenant: string) => {
        const { setSuspended } = await import('../catalog/tenants.ts');
        environment.report(
          await withCatalog(environment.config(), ({ catalog }) => setSuspended(catalog, tenant, suspended)),
        );
      });
  }
  withLimitOptions(
    group
      .command('limits')
      .description('show the limits of a tenant, or change those given')
      .argument('<tenant>', 'id or name'),
  )
    .addOption(jsonOption())
    .action(async (tenant: string, options: LimitOptions) => {
      const { tenantLimits } = await import('../catalog/tenants.ts');
      environment.report(
        await withCatalog(environment.config(), ({ catalog }) =>
          tenantLimits(catalog, tenant, limitsOf(options)),
        ),
      );
    });
  group
    .command('delete')
    .description('erase a tenant with everything it stored')
    .argument('<tenant>', 'id or name')
    .option('--yes', 'do not ask')
    .addOption(jsonOption())
    .action(async (tenant: string, options: { yes?: true }) => {
      const { deleteTenant } = await import('../catalog/tenants.ts');
      const confirm = await confirmation(options, environment);
      environment.report(
        await withCatalog(environment.config(), ({ catalog, purge }) =>
          deleteTenant(catalog, { tenant, confirm, purge }),
        ),
      );
    });
}

interface LimitOptions {
  readonly requestsPerMinute?: number;
  readonly maxConcurrentRequests?: number;
  readonly inputTokens?: bigint;
  readonly documents?: number;
}

function withLimitOptions(command: Command): Command {
  return command
    .option('--requests-per-minute <n>', 'requests in any 60 s', positiveInteger)
    .option('--max-concurrent-requests <n>', 'requests in flight', positiveInteger)
    .option('--input-tokens <n>', 'input tokens a UTC month', tokenCount)
    .option('--documents <n>', 'stored documents over all indexes', countFromZero);
}

function limitsOf(options: LimitOptions): Partial<TenantLimits> {
  return {
    ...(options.requestsPerMinute === undefined ? {} : { requestsPerMinute: options.requestsPerMinute }),
    ...(options.maxConcurrentRequests === undefined
      ? {}
      : { maxConcurrentRequests: options.maxConcurrentRequests }),
    ...(options.inputTokens === undefined ? {} : { inputTokens: options.inputTokens }),
    ...(options.documents === undefined ? {} : { documents: options.documents }),
  };
}
