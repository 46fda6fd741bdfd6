/** `kill -9` of the encoder under load: success or 503, nothing hangs, the pool heals by itself. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { expectError, expectReply, type Client, type Reply } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { eventually } from '../../support/running/eventually.ts';
import { encodersOf, isAlive } from '../../support/running/processes.ts';
import { createRandom } from '../../support/running/random.ts';
import { startServer, type ServerProcess } from '../../support/running/server.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { passages, recombine } from '../../support/running/texts.ts';
import { ranked, upserted } from '../../support/running/wire.ts';

describe('kill -9 of the encoder', () => {
  let server: ServerProcess;
  let client: Client;
  let library = '';

  beforeAll(async () => {
    server = await startServer();
    ({ client } = await createTenant(server));
    ({ id: library } = await makeIndex(client));
    await put(
      client,
      library,
      passages.map((passage) => ({ doc_id: passage.subject, text: passage.text })),
    );
  });

  afterAll(async () => {
    await server?.stop();
    await server?.scratch.remove();
  });

  async function killEncoders(): Promise<readonly number[]> {
    const encoders = await encodersOf(server.pid);
    expect(encoders.length).toBeGreaterThan(0);
    for (const { pid } of encoders) process.kill(pid, 'SIGKILL');
    return encoders.map(({ pid }) => pid);
  }

  async function heal(): Promise<void> {
    const started = performance.now();
    await eventually(async () => (await client.search(library, { query: 'light' })).status === 200, {
      everyMs: 100,
    });
    await eventually(async () => (await client.send('GET', '/readyz')).status === 200);
    console.log(`healed in ${Math.round(performance.now() - started)} ms`);
  }

  test('requests see success or 503, nothing hangs, and what was answered holds', async () => {
    const { id } = await makeIndex(client);
    const random = createRandom(3);
    const before = (await readUsage(client)).usage;
    const documentsOf = (client_: number, step: number): { doc_id: string; text: string }[] =>
      Array.from({ length: 3 }, (_, position) => ({
        doc_id: `${client_}-${step}-${position}`,
        text: recombine(random, 60),
      }));
    const stored: string[] = [];
    const refused: string[] = [];
    const statuses = new Map<number, number>();
    const tally = (reply: Reply): void => {
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      if (reply.status === 200) return;
      expectError(reply, 503, 'service_unavailable');
    };
    const load = { running: true };
    const upserting = async (name: number): Promise<void> => {
      for (let step = 0; load.running; step += 1) {
        const documents = documentsOf(name, step);
        const reply = await client.upsert(id, documents);
        tally(reply);
        (reply.status === 200 ? stored : refused).push(...documents.map((document) => document.doc_id));
      }
    };
    const searching = async (): Promise<void> => {
      while (load.running) {
        const body = { query: random.pick(passages).question };
        tally(await client.search(library, body));
      }
    };
    const scoring = async (): Promise<void> => {
      while (load.running) {
        const body = { query: 'light', documents: documentsOf(9, 0) };
        tally(await client.score(body));
      }
    };
    const clients = Promise.all([
      upserting(0),
      upserting(1),
      searching(),
      searching(),
      searching(),
      scoring(),
    ]);
    try {
      for (let round = 0; round < 3; round += 1) {
        const already = stored.length;
        await eventually(() => stored.length > already);
        const killed = await killEncoders();
        await heal();
        for (const pid of killed) expect(await isAlive(pid)).toBe(false);
      }
    } finally {
      load.running = false;
      await clients;
    }
    console.log(`statuses under three kills: ${JSON.stringify(Object.fromEntries(statuses))}`);

    // Documents that were answered with 200 are there. Documents that were answered with 503 were neither stored nor charged.
    const { usage } = await readUsage(client);
    expect(usage.documents - before.documents).toBe(stored.length);
    expect(usage.document_upserts - before.document_upserts).toBe(stored.length);
    for (const docId of refused.slice(0, 30)) {
      expect((await client.deleteDocument(id, docId)).body).toEqual({ deleted: false });
    }
    for (const docId of stored) {
      expect((await client.deleteDocument(id, docId)).body).toEqual({ deleted: true });
    }
  });

  test('results afterwards are identical to those before', async () => {
    const ask = async (): Promise<unknown> => {
      const answers: unknown[] = [];
      for (const passage of passages) {
        answers.push((await find(client, library, { query: passage.question, top_k: 36 })).results);
      }
      return answers;
    };
    const before = await ask();
    await killEncoders();
    await heal();
    expect(await ask()).toEqual(before);
    const again = expectReply(
      await client.upsert(library, [{ doc_id: 'after', text: 'river stone' }]),
      upserted,
    );
    expect(again.upserted_documents).toBe(1);
    expectReply(await client.score({ query: 'light', documents: [{ doc_id: 'a', text: 'river' }] }), ranked);
  });

  test('while no encoder is up the server is alive, says that it is not ready, and serves what needs no model', async () => {
    await killEncoders();
    const unready = await eventually(async () => {
      const reply = await client.send('GET', '/readyz');
      return reply.status === 503 ? reply : undefined;
    });
    expect(unready.text).toContain('encoder');
    expect((await client.send('GET', '/healthz')).status).toBe(200);
    expect((await client.listIndexes()).status).toBe(200);
    expect((await client.usage()).status).toBe(200);
    await heal();
  });
});
