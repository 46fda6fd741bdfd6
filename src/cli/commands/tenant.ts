/** `maxsimd tenant`: its words. */
import { Option, type Command } from 'commander';
import type { TenantLimits } from '../../catalog/contract.ts';
import { unlimitedAllowances } from '../../service/limits/unlimited.ts';
import { confirmation } from '../confirm.ts';
import { CommandFailure } from '../failure.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  administer,
  countFromZero,
  csvOption,
  day,
  nonBlank,
  tokenCount,
  withAdminOptions,
  withRateOptions,
  type AdminOptions,
  type RateOptions,
  type UsageOptions,
} from './options.ts';

export function addTenant(program: Command, environment: ProgramEnvironment): void {
  const group = program
    .command('tenant')
    .description('manage tenants, who use the service within their limits');
  withAdminOptions(
    withLimitOptions(
      group
        .command('create')
        .description('create a tenant and its first API key')
        .requiredOption('--name <name>', 'name of the tenant', nonBlank),
    ),
  ).action(async (options: LimitOptions & AdminOptions & { name: string }) => {
    const { createTenant } = await import('../catalog/tenants.ts');
    const wanted = { name: options.name, limits: limitsOf(options) };
    await administer(options, environment, (admin) => createTenant(admin, wanted), { create: true });
  });
  withAdminOptions(group.command('list').description('show all tenants')).action(
    async (options: AdminOptions) => {
      const { listTenants } = await import('../catalog/tenants.ts');
      await administer(options, environment, listTenants);
    },
  );
  for (const [name, suspended] of [
    ['suspend', true],
    ['resume', false],
  ] as const) {
    withAdminOptions(
      group
        .command(name)
        .description(suspended ? 'refuse all requests of a tenant (403)' : 'end a suspension')
        .argument('<tenant>', 'id or name'),
    ).action(async (tenant: string, options: AdminOptions) => {
      const { setSuspended } = await import('../catalog/tenants.ts');
      await administer(options, environment, (admin) => setSuspended(admin, tenant, suspended));
    });
  }
  addLimits(group, environment);
  addTenantUsage(group, environment);
  addDelete(group, environment);
}

function addLimits(group: Command, environment: ProgramEnvironment): void {
  withAdminOptions(
    withLimitOptions(
      group
        .command('limits')
        .description('show the limits of a tenant, or change some')
        .argument('<tenant>', 'id or name'),
    ),
  ).action(async (tenant: string, options: LimitOptions & AdminOptions) => {
    const { tenantLimits } = await import('../catalog/tenants.ts');
    await administer(options, environment, (admin) => tenantLimits(admin, tenant, limitsOf(options)));
  });
}

function addTenantUsage(group: Command, environment: ProgramEnvironment): void {
  withAdminOptions(
    group
      .command('usage')
      .description('show the usage of a tenant by day')
      .argument('[tenant]', 'id or name (default with --csv: all tenants)')
      .option('--from <day>', 'first day (default: the first of this month)', day)
      .option('--to <day>', 'last day (default: today, in UTC)', day)
      .addOption(csvOption()),
  ).action(async (tenant: string | undefined, options: AdminOptions & UsageOptions) => {
    const { tenantUsage, usageCsv } = await import('../catalog/tenants.ts');
    const today = new Date().toISOString().slice(0, 10);
    const range = { from: options.from ?? `${today.slice(0, 7)}-01`, to: options.to ?? today };
    if (options.csv === true)
      return await administer(options, environment, (admin) => usageCsv(admin, tenant, range));
    if (tenant === undefined)
      throw new CommandFailure('usage_error', 'a tenant is needed, or --csv for all tenants');
    await administer(options, environment, (admin) => tenantUsage(admin, tenant, range));
  });
}

function addDelete(group: Command, environment: ProgramEnvironment): void {
  withAdminOptions(
    group
      .command('delete')
      .description('erase a tenant with all its data')
      .argument('<tenant>', 'id or name')
      .option('--yes', 'do not ask'),
  ).action(async (tenant: string, options: AdminOptions & { yes?: true }) => {
    const { deleteTenant } = await import('../catalog/tenants.ts');
    const confirm = confirmation(options, environment);
    await administer(options, environment, (admin) => deleteTenant(admin, tenant, confirm));
  });
}

interface LimitOptions extends RateOptions {
  readonly inputTokens?: bigint;
  readonly documents?: number;
  readonly unlimited?: true;
}

function withLimitOptions(command: Command): Command {
  return withRateOptions(command)
    .option('--input-tokens <n>', 'input tokens in a month (UTC)', tokenCount)
    .option('--documents <n>', 'stored documents in all indexes', countFromZero)
    .addOption(
      new Option('--unlimited', 'no limit of input tokens and stored documents').conflicts([
        'inputTokens',
        'documents',
      ]),
    );
}

function limitsOf(options: LimitOptions): Partial<TenantLimits> {
  const { requestsPerMinute, maxConcurrentRequests, inputTokens, documents, unlimited } = options;
  return {
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...(maxConcurrentRequests !== undefined && { maxConcurrentRequests }),
    ...(inputTokens !== undefined && { inputTokens }),
    ...(documents !== undefined && { documents }),
    ...(unlimited === true && unlimitedAllowances),
  };
}
