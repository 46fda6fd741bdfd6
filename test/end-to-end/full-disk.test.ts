/** The whole service on a disk that is full, and on one that is read-only. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Disk, noDisks } from '../support/machine/disk.ts';
import { connect, expectError, expectReply, type Client } from '../support/running/client.ts';
import { createTenant, runCommand } from '../support/commands/command-line.ts';
import type { TestTenant } from '../support/commands/operators.ts';
import { eventually, within } from '../support/running/eventually.ts';
import { launchServer, makeScratch, type Scratch } from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { find, makeIndex, put, readUsage } from '../support/running/requests.ts';
import { textOfTokens } from '../support/running/texts.ts';
import { deleted } from '../support/running/wire.ts';

if (noDisks !== undefined) console.log(`skipped: ${noDisks}`);

const documents = 40;
const queryTokens = 4;

let scratch: Scratch;
let disk: Disk;
let server: ServerProcess;
let tenant: TestTenant;
let client: Client;
let indexId: string;

async function start(): Promise<void> {
  server = await startServer({ scratch, sharedEncoder: true, env: disk.environment });
  if (tenant !== undefined) client = connect(server.url, tenant.key);
}

async function search(): Promise<number> {
  const { results } = await find(client, indexId, { query: textOfTokens(queryTokens), top_k: 100 });
  return results.length;
}

describe.skipIf(noDisks !== undefined)('a disk', () => {
  beforeEach(async () => {
    scratch = await makeScratch();
    disk = await Disk.make({ directory: scratch.data });
    server = await startServer({ scratch, sharedEncoder: true, env: disk.environment });
    tenant = await createTenant(server);
    ({ client } = tenant);
    ({ id: indexId } = await makeIndex(client));
    const texts = Array.from({ length: documents }, (_, place) => ({
      doc_id: `d${place}`,
      text: textOfTokens(20),
    }));
    await put(client, indexId, texts);
  });

  afterEach(async () => {
    await server?.kill();
    await scratch.remove();
  });

  test('that is full: searches and deletes go on, also after a restart or a crash, and nothing is counted wrong', async () => {
    const before = BigInt((await readUsage(client)).usage.input_tokens);
    disk.setFreeBytes(0);
    let searches = 0;
    for (; searches < 30; searches += 1) expect(await search()).toBe(documents);
    // A node is ready if it takes every kind of request. Searches alone are no reason to say so: senders of upserts rely on it.
    const readiness = () => client.send('GET', '/readyz');
    await expect.poll(async () => (await readiness()).status).toBe(503);
    expect((await client.send('GET', '/healthz')).status).toBe(200);
    const refused = await client.upsert(indexId, [{ doc_id: 'more', text: textOfTokens(20) }]);
    expectError(refused, 503, 'service_unavailable');
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    for (let place = 0; place < 10; place += 1) {
      const reply = await client.deleteDocument(indexId, `d${place}`);
      expect(expectReply(reply, deleted)).toEqual({ deleted: true });
    }
    expect(await search()).toBe(documents - 10);
    searches += 1;
    // Documents cannot use the space of the reserve.
    expectError(
      await client.upsert(indexId, [{ doc_id: 'more', text: textOfTokens(20) }]),
      503,
      'service_unavailable',
    );

    // The usage that waits is written at the latest when the server ends.
    await server.stop();
    disk.setFreeBytes(0);
    await start();
    expect(await search()).toBe(documents - 10);
    await server.kill();
    await start();
    expect(await search()).toBe(documents - 10);
    const reply = await client.deleteDocument(indexId, 'd10');
    expect(expectReply(reply, deleted)).toEqual({ deleted: true });

    // The one search whose usage may have waited in memory when the process was killed is the only one that may lack.
    const { usage } = await readUsage(client);
    expect([searches + 1, searches + 2]).toContain(usage.searches);
    expect(usage.input_tokens).toBe(String(before + BigInt(usage.searches * queryTokens)));

    disk.setFreeBytes(undefined);
    await eventually(
      async () =>
        (await client.upsert(indexId, [{ doc_id: 'more', text: textOfTokens(20) }])).status === 200
          ? true
          : undefined,
      { everyMs: 500 },
    );
    expect(await search()).toBe(documents - 10);
  });

  test('that is full: an index and a tenant can be deleted', async () => {
    const other = await createTenant(server);
    disk.setFreeBytes(0);
    const reply = await client.send('DELETE', `/v1/indexes/${indexId}`);
    expect(reply.status).toBeLessThan(300);
    const erased = await runCommand(['tenant', 'delete', other.id, '--yes'], {
      MAXSIMD_DATA_DIR: scratch.data,
      ...disk.environment,
    });
    expect(erased).toMatchObject({ exitCode: 0 });
  });

  test('that is read-only: searches go on, and a start is refused with the reason', async () => {
    disk.setReadOnly(true);
    for (let searches = 0; searches < 10; searches += 1) expect(await search()).toBe(documents);
    expectError(await client.deleteDocument(indexId, 'd0'), 503, 'service_unavailable');
    disk.setReadOnly(false);
    await eventually(async () => (await readUsage(client)).usage.searches === 10);
    await server.stop();
    disk.setReadOnly(true);
    const launched = await launchServer({ scratch, env: disk.environment });
    expect(await within('the refusal', launched.exited)).toMatchObject({ code: 1 });
    expect(launched.output().stderr).toMatch(
      /^maxsimd: the data directory .* is on a read-only file system/m,
    );
    expect(launched.output().stderr).not.toMatch(/^ +at /m);
  });
});
