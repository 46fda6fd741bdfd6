/** Options of several commands, and checks of their values. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { unlimitedAllowances } from '../../service/limits/unlimited.ts';
import type { Endpoint, OnWait } from '../client.ts';
import type { Administration } from '../../service/administration.ts';
import type { CommandResult } from '../output.ts';
import { CommandFailure } from '../failure.ts';
import type { ProgramEnvironment } from './environment.ts';

const urlDefault = 'http://127.0.0.1:8080';

export interface ServiceOptions {
  readonly url?: string;
  readonly key?: string;
  readonly timeout: number;
  readonly verbose?: true;
}

export function withServiceOptions(command: Command, timeoutSeconds: number): Command {
  return withEndpointOptions(command, timeoutSeconds).addOption(jsonOption());
}

export function withEndpointOptions(command: Command, timeoutSeconds: number): Command {
  return command
    .option('--url <url>', `address of the service (or MAXSIMD_URL; default ${urlDefault})`)
    .option('--key <key>', 'API key (or MAXSIMD_API_KEY, which other users of this machine cannot see)')
    .option('--timeout <seconds>', 'time limit of one request', positiveNumber, timeoutSeconds)
    .addOption(verboseOption());
}

export function endpointFrom(options: ServiceOptions, environment: ProgramEnvironment): Endpoint {
  const key = options.key ?? environment.apiKey;
  if (key === undefined || key === '')
    throw new CommandFailure('usage_error', 'an API key is needed: --key KEY or MAXSIMD_API_KEY');
  return { ...serviceFrom(options, environment), key };
}

export function serviceFrom(options: ServiceOptions, environment: ProgramEnvironment): Omit<Endpoint, 'key'> {
  return {
    url: options.url ?? environment.url ?? urlDefault,
    timeoutMs: options.timeout * 1000,
    onWait: tellOfWaits(options, environment),
  };
}

function tellOfWaits(
  { verbose }: { readonly verbose?: true },
  { stderr }: ProgramEnvironment,
): OnWait | undefined {
  if (verbose !== true) return undefined;
  return (error, delayMs) =>
    void stderr.write(`maxsimd: ${error.message}: again in ${(delayMs / 1000).toFixed(1)} s\n`);
}

export interface AdminOptions {
  readonly adminUrl?: string;
  readonly adminKey?: string;
  readonly verbose?: true;
}

/** For commands that work on the catalog of this machine, or through the admin API of a service. */
export function withAdminOptions(command: Command): Command {
  return command
    .option(
      '--admin-url <url>',
      'address of the admin API (or MAXSIMD_ADMIN_URL; default: work on this machine)',
    )
    .option('--admin-key <key>', 'key of an operator (or MAXSIMD_ADMIN_KEY)')
    .addOption(verboseOption())
    .addOption(jsonOption());
}

/** Works through the admin API that the options or the environment name, or else on this machine, and reports the result. */
export async function administer(
  options: AdminOptions,
  environment: ProgramEnvironment,
  work: (administration: Administration) => Promise<CommandResult>,
  { create = false }: { readonly create?: boolean } = {},
): Promise<void> {
  const url = options.adminUrl ?? environment.adminUrl;
  if (url === undefined) {
    const { withCatalog } = await import('../catalog/catalog-access.ts');
    const config = environment.config();
    environment.report(await withCatalog(config, ({ administration }) => work(administration), { create }));
    return;
  }
  const { remoteAdministration } = await import('../catalog/remote-administration.ts');
  const key = options.adminKey ?? environment.adminKey;
  environment.report(await work(remoteAdministration(url, key, tellOfWaits(options, environment))));
}

function verboseOption(): Option {
  return new Option('--verbose', 'report each failed attempt that is repeated');
}

export function jsonOption(): Option {
  return new Option('--json', 'print one JSON document');
}

export interface RateOptions {
  readonly requestsPerMinute?: number;
  readonly maxConcurrentRequests?: number;
}

export function withRateOptions(command: Command): Command {
  return command
    .option('--requests-per-minute <n>', 'requests in 60 s', positiveInteger)
    .option('--max-concurrent-requests <n>', 'requests at once', positiveInteger);
}

export interface UsageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly csv?: true;
}

export function csvOption(): Option {
  return new Option('--csv', 'print usage by day as CSV (RFC 4180)').conflicts('json');
}

export function countFromZero(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('must be a whole number');
  return value;
}

export function positiveInteger(text: string): number {
  const value = countFromZero(text);
  if (value < 1) throw new InvalidArgumentError('must be at least 1');
  return value;
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value <= 0) throw new InvalidArgumentError('must be a number above 0');
  return value;
}

/** The ledger has signed 64 bits. */
export function tokenCount(text: string): bigint {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('must be a whole number');
  const value = BigInt(text);
  if (value > unlimitedAllowances.inputTokens) throw new InvalidArgumentError('must be at most 2^63 - 1');
  return value;
}

export function nonBlank(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('must not be empty');
  return text;
}

/** A day in UTC. */
export function day(text: string): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || new Date(`${text}T00:00:00Z`).toJSON()?.slice(0, 10) !== text)
    throw new InvalidArgumentError('must be a day like 2026-11-23');
  return text;
}

/** Names that are separated by commas. */
export function names(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
