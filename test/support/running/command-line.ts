/** The command line as real processes, and what operators do with it: tenants and keys. */
import { spawn } from 'node:child_process';

import { z } from 'zod';

import { setTimeout as pause } from 'node:timers/promises';

import { connect, type Client } from './client.ts';
import { within } from './eventually.ts';
import { childEnvironment, entryPoint, isClustered } from './launch.ts';
import type { SharedServer } from '../shared-services.ts';

const keyAgeMs = 2_100;

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `maxsimd <args>` to its end. */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const child = spawn(process.execPath, [entryPoint, ...args], {
    env: childEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  const ended = Promise.withResolvers<number | null>();
  child.once('error', ended.reject);
  child.once('close', ended.resolve);
  try {
    const code = await within(60_000, `maxsimd ${args.slice(0, 2).join(' ')}`, ended.promise);
    return { code, ...output };
  } finally {
    child.kill('SIGKILL');
  }
}

/** Runs a command that must succeed and print JSON. */
export async function runJson<Schema extends z.ZodType>(
  dataDir: string,
  args: readonly string[],
  schema: Schema,
): Promise<z.output<Schema>> {
  const result = await runCommand([...args, '--json'], { MAXSIMD_DATA_DIR: dataDir });
  if (result.code !== 0) {
    throw new Error(`maxsimd ${args.join(' ')} ended with ${result.code}\n${result.stdout}${result.stderr}`);
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
): Promise<{ readonly id: string; readonly key: string }> {
  const created = await runJson(server.scratch.data, ['key', 'create', tenantId], createdKey);
  return { id: created.key_id, key: created.api_key };
}

/** `tenant suspend`, `tenant resume`, `key revoke` and their like: must succeed, output ignored. */
export async function operate(server: SharedServer, ...args: readonly string[]): Promise<void> {
  const result = await runCommand(args, { MAXSIMD_DATA_DIR: server.scratch.data });
  if (result.code !== 0) {
    throw new Error(`maxsimd ${args.join(' ')} ended with ${result.code}\n${result.stdout}${result.stderr}`);
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
