/** Commands of operators for tenants and keys, run beside a running service. */
import { z } from 'zod';
import { connect, type Client } from '../running/client.ts';
import type { Finished } from './command-here.ts';

/** A service, and the command line on its catalog. */
export interface Operated {
  readonly url: string;
  readonly run: (args: readonly string[]) => Promise<Finished>;
  /** Resolves once every node acts by the last command. */
  readonly settled?: () => Promise<void>;
}

export interface TenantLimits {
  readonly requestsPerMinute?: number;
  readonly maxConcurrentRequests?: number;
  readonly inputTokens?: number | bigint;
  readonly documents?: number;
}

/** Limits that tests which are not about limits never meet. */
const generous: TenantLimits = { requestsPerMinute: 1_000_000, maxConcurrentRequests: 64 };

export interface TestTenant {
  readonly id: string;
  readonly name: string;
  readonly key: string;
  readonly client: Client;
}

const createdTenant = z.looseObject({ tenant_id: z.string(), name: z.string(), api_key: z.string() });
const createdKey = z.looseObject({ key_id: z.string(), api_key: z.string() });

let tenantsMade = 0;

export async function createTenant(service: Operated, limits: TenantLimits = generous): Promise<TestTenant> {
  tenantsMade += 1;
  // Files that run at the same time share a server.
  const name = `tenant ${process.pid}-${tenantsMade}`;
  const created = createdTenant.parse(
    await runJson(service, ['tenant', 'create', '--name', name, ...limitFlags(limits)]),
  );
  return { id: created.tenant_id, name, key: created.api_key, client: connect(service.url, created.api_key) };
}

export async function createKey(
  service: Operated,
  tenantId: string,
  ...flags: readonly string[]
): Promise<{ readonly id: string; readonly key: string }> {
  const created = createdKey.parse(await runJson(service, ['key', 'create', tenantId, ...flags]));
  return { id: created.key_id, key: created.api_key };
}

/** `tenant suspend`, `tenant resume`, `key revoke` and their like: must succeed, output ignored. */
export async function operate(service: Operated, ...args: readonly string[]): Promise<void> {
  await succeed(service, args);
  await service.settled?.();
}

async function runJson(service: Operated, args: readonly string[]): Promise<unknown> {
  return JSON.parse(await succeed(service, [...args, '--json']));
}

async function succeed(service: Operated, args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await service.run(args);
  if (exitCode !== 0) throw new Error(`maxsimd ${args.join(' ')} ended with ${exitCode}\n${stdout}${stderr}`);
  return stdout;
}

function limitFlags(limits: TenantLimits): string[] {
  const flags: readonly (readonly [string, number | bigint | undefined])[] = [
    ['--requests-per-minute', limits.requestsPerMinute],
    ['--max-concurrent-requests', limits.maxConcurrentRequests],
    ['--input-tokens', limits.inputTokens],
    ['--documents', limits.documents],
  ];
  return flags.flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)]));
}
