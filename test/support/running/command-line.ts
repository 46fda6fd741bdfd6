/** The command line as real processes, and what operators do with it: tenants and keys. */
import { z } from 'zod';

import { setTimeout as pause } from 'node:timers/promises';

import { connect, type Client } from './client.ts';
import { run, type Finished } from './command-process.ts';
import { within } from './eventually.ts';
import { childEnvironment, isClustered } from './launch.ts';
import type { SharedServer } from '../shared-services.ts';

const keyAgeMs = 2_100;

/** Runs `maxsimd <args>` as a process to its end. */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  return within(
    60_000,
    `maxsimd ${args.slice(0, 2).join(' ')}`,
    run(args, { environment: childEnvironment(env) }),
  );
}

/** Runs a command that must succeed and print JSON. */
export async function runJson<Schema extends z.ZodType>(
  dataDir: string,
  args: readonly string[],
  schema: Schema,
): Promise<z.output<Schema>> {
  const result = await runCommand([...args, '--json'], { MAXSIMD_DATA_DIR: dataDir });
  if (result.exitCode !== 0) {
    throw new Error(
      `maxsimd ${args.join(' ')} ended with ${result.exitCode}\n${result.stdout}${result.stderr}`,
    );
  }
  return schema.parse(JSON.parse(result.stdout));
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

/** A tenant made by the command line beside the running server. */
export async function createTenant(
  server: SharedServer,
  limits: TenantLimits = generous,
): Promise<TestTenant> {
  tenantsMade += 1;
  // Files that run at the same time share a server.
  const name = `tenant ${process.pid}-${tenantsMade}`;
  const created = await runJson(
    server.scratch.data,
    ['tenant', 'create', '--name', name, ...limitFlags(limits)],
    createdTenant,
  );
  return { id: created.tenant_id, name, key: created.api_key, client: connect(server.url, created.api_key) };
}

export async function createKey(
  server: SharedServer,
  tenantId: string,
  ...flags: readonly string[]
): Promise<{ readonly id: string; readonly key: string }> {
  const created = await runJson(server.scratch.data, ['key', 'create', tenantId, ...flags], createdKey);
  return { id: created.key_id, key: created.api_key };
}

/** `tenant suspend`, `tenant resume`, `key revoke` and their like: must succeed, output ignored. */
export async function operate(server: SharedServer, ...args: readonly string[]): Promise<void> {
  const result = await runCommand(args, { MAXSIMD_DATA_DIR: server.scratch.data });
  if (result.exitCode !== 0) {
    throw new Error(
      `maxsimd ${args.join(' ')} ended with ${result.exitCode}\n${result.stdout}${result.stderr}`,
    );
  }
  // One node that refuses says nothing of the others: each keeps what it has read of a key for two seconds.
  if (isClustered()) await pause(keyAgeMs);
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
