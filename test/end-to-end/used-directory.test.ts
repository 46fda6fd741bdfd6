/** A data directory that lost its catalog or its key pepper: nobody serves it, and nothing in it goes. */
import { rename, readdir } from 'node:fs/promises';
import path from 'node:path';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { connect } from '../support/running/client.ts';
import { createTenant, runCommand } from '../support/commands/command-line.ts';
import type { TestTenant } from '../support/commands/operators.ts';
import { within } from '../support/running/eventually.ts';
import { launchServer, makeScratch, type Scratch } from '../support/running/launch.ts';
import { startServer } from '../support/running/server.ts';
import { find, makeIndex, put } from '../support/running/requests.ts';

let scratch: Scratch;
let tenant: TestTenant;
let indexId: string;
let before: unknown;
beforeAll(async () => {
  scratch = await makeScratch();
  const server = await startServer({ scratch, sharedEncoder: true });
  tenant = await createTenant(server);
  ({ id: indexId } = await makeIndex(tenant.client));
  await put(tenant.client, indexId, [
    { doc_id: 'whale', text: 'The blue whale is the largest animal.' },
    { doc_id: 'bee', text: 'Honey bees dance.' },
  ]);
  before = (await find(tenant.client, indexId, { query: 'insects' })).results;
  await server.stop();
});
afterAll(() => scratch.remove());

const files = async (): Promise<readonly string[]> =>
  (await readdir(scratch.data, { recursive: true }))
    .filter((name) => !/-shm$|-wal$|server\.lock/.test(name))
    .toSorted();

/** Takes a file away; the result puts it back. */
async function withoutFile(name: string): Promise<() => Promise<void>> {
  const [place, away] = [path.join(scratch.data, name), path.join(scratch.root, name)];
  await rename(place, away);
  return () => rename(away, place);
}

/** By the server and by every command, which change nothing. */
async function expectRefused(message: RegExp): Promise<void> {
  const left = await files();
  const commands = [
    ['tenant', 'list'],
    ['tenant', 'create', '--name', 'other'],
    ['index', 'compact'],
  ];
  const launched = await launchServer({ scratch });
  const ended = await Promise.all([
    within('the refusal', launched.exited).then(({ code: exitCode }) => ({
      exitCode,
      ...launched.output(),
    })),
    ...commands.map((command) => runCommand(command, { MAXSIMD_DATA_DIR: scratch.data })),
  ]);
  for (const [place, { exitCode, stderr }] of ended.entries()) {
    expect([exitCode, stderr], commands[place - 1]?.join(' ')).toEqual([1, expect.stringMatching(message)]);
  }
  expect(await files()).toEqual(left);
}

test('without its catalog it is refused, and serves as before when that is put back', async () => {
  const putBack = await withoutFile('catalog.db');
  await expectRefused(/catalog\.db is missing.*backup/);
  await putBack();
  const server = await startServer({ scratch, sharedEncoder: true });
  const { results } = await find(connect(server.url, tenant.key), indexId, { query: 'insects' });
  expect(results).toEqual(before);
  await server.stop();
});

test('without its key pepper it is refused, and gets other keys from key reset', async () => {
  await withoutFile('key-pepper');
  await expectRefused(/key-pepper is missing.*backup.*maxsimd key reset/);
  const data = { MAXSIMD_DATA_DIR: scratch.data };
  const reset = await runCommand(['key', 'reset', '--yes'], data);
  expect(reset).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/2 API keys are revoked/) });
  const server = await startServer({ scratch, sharedEncoder: true });
  const again = await runCommand(['key', 'reset', '--yes'], data);
  expect(again).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/another server/) });
  expect((await connect(server.url, tenant.key).usage()).status).toBe(401);
  const made = await runCommand(['key', 'create', tenant.id, '--json'], data);
  const { api_key: key } = JSON.parse(made.stdout) as { api_key: string };
  expect((await find(connect(server.url, key), indexId, { query: 'insects' })).results).toEqual(before);
  await server.stop();
});
