/** Gives the tests of a file a service and a tenant. */
import { afterAll, beforeAll } from 'vitest';
import type { Client } from '../running/client.ts';
import type { Finished } from '../commands/command-here.ts';
import {
  createKey,
  createTenant,
  operate,
  type Operated,
  type TenantLimits,
  type TestTenant,
} from '../commands/operators.ts';

/** `Server` is the type of the server that the tests of the file use. */
export interface Stage<Server> {
  readonly server: Server;
  /** Makes a tenant whose limits are never reached. */
  readonly tenant: TestTenant;
  readonly client: Client;
  newTenant(limits?: TenantLimits): Promise<TestTenant>;
  newKey(
    tenantId: string,
    ...flags: readonly string[]
  ): Promise<{ readonly id: string; readonly key: string }>;
  /** Runs an operator's command (`tenant suspend ID`, …) beside the server; it must succeed. */
  operate(...args: readonly string[]): Promise<void>;
  /** Runs any command beside the server, and waits for its end. */
  run(args: readonly string[]): Promise<Finished>;
}

/** The service is started before the first test of the file and ended after the last. */
export function stageOf<Server>({
  start,
  end,
  operated,
}: {
  readonly start: () => Promise<Server>;
  readonly end: (server: Server) => Promise<void>;
  readonly operated: (server: Server) => Operated;
}): Stage<Server> {
  let server: Server | undefined;
  let tenant: TestTenant | undefined;
  const present = <Value>(value: Value | undefined): Value => {
    if (value === undefined) throw new Error('the stage is set before the first test, not earlier');
    return value;
  };
  beforeAll(async () => {
    server = await start();
    tenant = await createTenant(operated(server));
  });
  afterAll(async () => {
    if (server !== undefined) await end(server);
  });
  return {
    get server() {
      return present(server);
    },
    get tenant() {
      return present(tenant);
    },
    get client() {
      return present(tenant).client;
    },
    newTenant: (limits) => createTenant(operated(present(server)), limits),
    newKey: (tenantId, ...flags) => createKey(operated(present(server)), tenantId, ...flags),
    operate: (...args) => operate(operated(present(server)), ...args),
    run: (args) => operated(present(server)).run(args),
  };
}
