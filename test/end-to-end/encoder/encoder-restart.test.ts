/** Requests that arrive while the only encoder is out: they wait for it within a bound, and no longer. */
import { describe, expect, onTestFinished, test } from 'vitest';

import { expectError, type Client } from '../../support/running/client.ts';
import { createTenant } from '../../support/running/command-line.ts';
import { encodersOf } from '../../support/running/processes.ts';
import { startServer, type ServerOptions, type ServerProcess } from '../../support/running/server.ts';
import { find, makeIndex, put } from '../../support/running/stage.ts';

async function stage(options: ServerOptions) {
  const server = await startServer(options);
  onTestFinished(async () => {
    await server.stop();
    await server.scratch.remove();
  });
  const { client } = await createTenant(server);
  const { id } = await makeIndex(client);
  await put(client, id, [{ doc_id: 'light', text: 'light is a wave and a particle' }]);
  return { server, client, id };
}

async function killEncoder(server: ServerProcess, client: Client): Promise<void> {
  const encoders = await encodersOf(server.pid);
  expect(encoders).toHaveLength(1);
  for (const { pid } of encoders) process.kill(pid, 'SIGKILL');
  // The server knows: a request that comes now finds no encoder.
  await expect.poll(async () => (await client.send('GET', '/readyz')).status).toBe(503);
}

describe('while the only encoder restarts', () => {
  test('a search, a score and an upsert wait for it and are answered', async () => {
    const { server, client, id } = await stage({
      constants: { encoderWaitMs: 60_000 },
      env: { MAXSIMD_TIMEOUT_SEARCH_MS: '60000' },
    });
    await killEncoder(server, client);
    const [found, scored, stored] = await Promise.all([
      find(client, id, { query: 'a wave' }),
      client.score({ query: 'a wave', documents: [{ doc_id: 'one', text: 'light is a wave' }] }),
      client.upsert(id, [{ doc_id: 'sound', text: 'sound is a wave' }]),
    ]);
    expect(found.results.map(({ doc_id }) => doc_id)).toContain('light');
    expect([scored.status, stored.status]).toEqual([200, 200]);
  }, 120_000);

  test('a request past the bound gets 503 with Retry-After', async () => {
    const { server, client, id } = await stage({ constants: { encoderWaitMs: 0 } });
    await killEncoder(server, client);
    const reply = await client.search(id, { query: 'a wave' });
    expectError(reply, 503, 'service_unavailable');
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  }, 120_000);
});
