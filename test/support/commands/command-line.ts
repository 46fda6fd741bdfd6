/** Runs the command line as real processes, and makes tenants and keys by it. */
import { z } from 'zod';

import { setTimeout as pause } from 'node:timers/promises';

import { run } from './command-process.ts';
import type { Finished } from './command-here.ts';
import { within } from '../running/eventually.ts';
import { childEnvironment, isClustered } from '../running/launch.ts';
import type { SharedServer } from '../shared-services.ts';
import * as made from './operators.ts';
import type { TenantLimits, TestTenant } from './operators.ts';

const keyAgeMs = 2_100;

/** Runs `maxsimd <args>` as a process to its end. */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  return within(`maxsimd ${args.slice(0, 2).join(' ')}`, run(args, { environment: childEnvironment(env) }));
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

/** Makes a tenant by the command line, beside the running server. */
export function createTenant(server: SharedServer, limits?: TenantLimits): Promise<TestTenant> {
  return made.createTenant(operated(server), limits);
}

export function createKey(
  server: SharedServer,
  tenantId: string,
  ...flags: readonly string[]
): ReturnType<typeof made.createKey> {
  return made.createKey(operated(server), tenantId, ...flags);
}

export function operate(server: SharedServer, ...args: readonly string[]): Promise<void> {
  return made.operate(operated(server), ...args);
}

/** Runs the commands of operators as processes. */
export function operated({ url, scratch }: SharedServer): made.Operated {
  return {
    url,
    run: (args) => runCommand(args, { MAXSIMD_DATA_DIR: scratch.data }),
    // Each node keeps the row of a key for two seconds. So one node may refuse a key that the others still take.
    settled: () => (isClustered() ? pause(keyAgeMs) : Promise.resolve()),
  };
}
