/** A server for all tests of a file, with a tenant. */
import { afterAll, beforeAll, inject } from 'vitest';

import { expectReply, type Client, type Reply } from './client.ts';
import { createTenant, operate, type TenantLimits, type TestTenant } from './command-line.ts';
import { startNodes } from '../cluster/nodes.ts';
import { isClustered } from './launch.ts';
import { sharedService, type SharedServer } from '../shared-services.ts';
import { startServer, type ServerOptions, type ServerProcess } from './server.ts';
import { index, ranked, upserted, usageSummary } from './wire.ts';
import type { DocumentInput, Index, Ranked, Upserted, UsageSummary } from './wire.ts';

/** `Server` is what the tests of a file may do with it. */
export interface Stage<Server = ServerProcess> {
  readonly server: Server;
  /** A tenant with limits that are never met. */
  readonly tenant: TestTenant;
  readonly client: Client;
  newTenant(limits?: TenantLimits): Promise<TestTenant>;
  /** Runs an operator's command (`tenant suspend ID`, …) beside the server; it must succeed. */
  operate(...args: readonly string[]): Promise<void>;
}

/** A server of the file's own, for tests that set it up, stop it, or read what it prints. */
export function useStage(options: ServerOptions = {}): Stage {
  return stageOf(
    () => (isClustered() ? startNodes(options) : startServer(options)),
    async (server) => {
      await server.stop();
      await server.scratch.remove();
    },
  );
}

/** The server that many files share. */
export function useSharedStage(): Stage<SharedServer> {
  if (isClustered()) return useStage();
  return stageOf(
    () => sharedService(inject('sharedServicesUrl'), 'server'),
    () => Promise.resolve(),
  );
}

function stageOf<Server extends SharedServer>(
  start: () => Promise<Server>,
  end: (server: Server) => Promise<void>,
): Stage<Server> {
  let server: Server | undefined;
  let tenant: TestTenant | undefined;
  const present = <Value>(value: Value | undefined): Value => {
    if (value === undefined) throw new Error('the stage is set before the first test, not earlier');
    return value;
  };
  beforeAll(async () => {
    server = await start();
    tenant = await createTenant(server);
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
    newTenant: (limits) => createTenant(present(server), limits),
    operate: (...args) => operate(present(server), ...args),
  };
}

let indexesMade = 0;

/** A fresh index with a name of its own. */
export async function makeIndex(
  client: Client,
  body: Readonly<Record<string, unknown>> = {},
): Promise<Index> {
  indexesMade += 1;
  return expectReply(await client.createIndex({ name: `index ${indexesMade}`, ...body }), index, 201);
}

/** Upserts that must succeed whole. */
export async function put(
  client: Client,
  indexId: string,
  documents: readonly DocumentInput[],
): Promise<Upserted> {
  const reply = expectReply(await client.upsert(indexId, documents), upserted);
  if (reply.failed.length > 0 || reply.upserted_documents !== documents.length) {
    throw new Error(`not every document was stored: ${JSON.stringify(reply.failed)}`);
  }
  return reply;
}

export async function find(
  client: Client,
  indexId: string,
  body: Readonly<Record<string, unknown>>,
): Promise<Ranked> {
  return expectReply(await client.search(indexId, body), ranked);
}

export async function readUsage(client: Client): Promise<UsageSummary> {
  return expectReply(await client.usage(), usageSummary);
}

/**
 * Sends a long request of a tenant that may have one request at a time, and returns once it is in flight:
 * its slot is taken. The watching itself needs the slot for a moment; a request refused for that is sent again.
 */
export async function sendLong(
  client: Client,
  send: () => Promise<Reply>,
): Promise<{ readonly reply: Promise<Reply> }> {
  for (;;) {
    const sent = send();
    const outcome: { reply?: Reply; failed?: true } = {};
    const watch = async (): Promise<void> => {
      try {
        outcome.reply = await sent;
      } catch {
        // The caller gets the same promise and its reason.
        outcome.failed = true;
      }
    };
    void watch();
    const isOver = (): boolean => outcome.reply !== undefined || outcome.failed === true;
    while (!isOver()) {
      const watched = await client.usage();
      if (watched.status === 429 && !isOver()) return { reply: sent };
    }
    if (outcome.reply?.status !== 429)
      throw new Error(`the long request was over at once: ${outcome.reply?.status}`);
  }
}
