/**
 * The whole service over files that become shorter or change beneath it: whoever needs what is gone is refused, the
 * other index answers throughout, and the process lives.
 */
import assert from 'node:assert/strict';
import { readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, expectError, expectReply, type Client, type Reply } from '../support/running/client.ts';
import { createTenant } from '../support/commands/command-line.ts';
import type { TestTenant } from '../support/commands/operators.ts';
import { eventually } from '../support/running/eventually.ts';
import { makeScratch, type Scratch } from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { makeIndex, put } from '../support/running/requests.ts';
import { textOfTokens } from '../support/running/texts.ts';
import { index, ranked } from '../support/running/wire.ts';

const documents = Array.from({ length: 8 }, (_, place) => ({
  doc_id: `d${place}`,
  text: textOfTokens(60),
  metadata: { even: place % 2 === 0 },
}));
const everything = { query: textOfTokens(4), top_k: documents.length };

let scratch: Scratch;
let server: ServerProcess;
let tenant: TestTenant;
let client: Client;
let otherId: string;

/** An index whose documents lie in sealed segments. */
async function makeSealed(): Promise<string> {
  const { id } = await makeIndex(client);
  for (const document of documents) await put(client, id, [document]);
  return id;
}

/** Files of an index by how their names end. */
async function filesOf(indexId: string, ending: string): Promise<readonly string[]> {
  const directory = path.join(scratch.data, 'segments', indexId);
  const names = (await readdir(directory)).filter((name) => name.endsWith(ending));
  expect(names).not.toEqual([]);
  return names.map((name) => path.join(directory, name));
}

async function statusOf(indexId: string): Promise<string> {
  return expectReply(await client.send('GET', `/v1/indexes/${indexId}`), index).status;
}

/** Searches an index while the other one is searched; that one always answers. */
async function search(indexId: string, body: Readonly<Record<string, unknown>> = everything): Promise<Reply> {
  const [reply, other] = await Promise.all([
    client.search(indexId, body),
    client.search(otherId, everything),
  ]);
  expect(expectReply(other, ranked).results).toHaveLength(documents.length);
  return reply;
}

/** 503 until the damage is certain, from then on 500. */
async function expectCondemned(indexId: string): Promise<void> {
  const first = await search(indexId);
  expectError(first, 503, 'service_unavailable');
  expect(first.headers.get('retry-after')).toMatch(/^[1-9][0-9]*$/);
  await eventually(async () => (await statusOf(indexId)) === 'error');
  await eventually(async () => (await search(indexId)).status === 500);
  expect(await statusOf(otherId)).toBe('ready');
}

beforeAll(async () => {
  scratch = await makeScratch();
  server = await startServer({ scratch, sharedEncoder: true, constants: { segmentTokenVectorsMax: 64 } });
  tenant = await createTenant(server);
  ({ client } = tenant);
  otherId = await makeSealed();
});
afterAll(async () => {
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  await scratch.remove();
});

describe('a segment beneath an open index', () => {
  test.each(['sealed', 'active'])('that is cut short while it is %s', async (state) => {
    const id = state === 'sealed' ? await makeSealed() : (await makeIndex(client)).id;
    if (state === 'active') await put(client, id, documents.slice(0, 1));
    expect((await search(id)).status).toBe(200);
    for (const file of await filesOf(id, '.seg')) await truncate(file, 0);
    await expectCondemned(id);
  });

  test('that has changed where no search has looked', async () => {
    const id = await makeSealed();
    await server.stop();
    // Sealed ones, whose records nobody reads when the index is opened.
    for (const postings of await filesOf(id, '.postings')) {
      const file = postings.replace('.postings', '');
      const bytes = await readFile(file);
      // Within the records.
      bytes[4096]! ^= 1;
      await writeFile(file, bytes);
    }
    server = await startServer({ scratch, sharedEncoder: true, constants: { segmentTokenVectorsMax: 64 } });
    client = connect(server.url, tenant.key);
    await expectCondemned(id);
  });

  test('that loses what was derived from it answers as before', async () => {
    const id = await makeSealed();
    const filtered = { ...everything, filter: { even: true } };
    const before = expectReply(await search(id, filtered), ranked).results;
    expect(before).toHaveLength(documents.length / 2);
    for (const file of await filesOf(id, '.postings')) await truncate(file, 0);
    expect(expectReply(await search(id, filtered), ranked).results).toEqual(before);
    expect(await statusOf(id)).toBe('ready');
  });
});
