import { existsSync } from 'node:fs';
import { mkdir, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { openWriter } from '../../../../src/catalog/sqlite/connection.ts';
import type { CheckpointOperations } from '../../../../src/catalog/sqlite/threads/checkpoint-thread.ts';
import { ThreadClient } from '../../../../src/catalog/sqlite/threads/thread-client.ts';
import { newDirectory } from '../../../support/machine/temporary-directory.ts';
import { eventually } from '../../../support/running/eventually.ts';

function clientOf(file: string): ThreadClient<CheckpointOperations> {
  return new ThreadClient({
    entry: 'checkpoint-thread',
    data: { path: file, busyTimeoutMs: 50 },
    onBackgroundFailure: () => undefined,
  });
}

it('starts a thread again that could not open its file', async () => {
  const file = path.join(await newDirectory(), 'thread.db');
  const client = clientOf(file);
  const asked = (): Promise<unknown> => client.request('restartLog');
  // SQLite cannot open a directory as a database.
  await mkdir(file);
  for (let time = 0; time < 2; time++) {
    const refused = {
      code: 'service_unavailable',
      message: 'a thread of the catalog could not open its file',
    };
    const outcomes = await Promise.allSettled([asked(), asked()]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: refused });
  }
  await rmdir(file);
  const connection = await openWriter({ path: file, durability: 'process_death', busyTimeoutMs: 50 });
  connection.close();
  await asked();
  await client.close();
});

it('starts a thread before anything is asked of it', async () => {
  const file = path.join(await newDirectory(), 'thread.db');
  const client = clientOf(file);
  expect(existsSync(file)).toBe(false);
  client.start();
  // The thread creates the file that it opens.
  await eventually(() => existsSync(file));
  await client.request('restartLog');
  await client.close();
});
