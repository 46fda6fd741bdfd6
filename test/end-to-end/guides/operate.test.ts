/** Runs the commands of a backup and before an upgrade as they stand in docs/guide/operate.md, beside a real server. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { connect } from '../../support/running/client.ts';
import { createTenant } from '../../support/commands/command-line.ts';
import { documentText, runCommands } from './document-commands.ts';
import { makeScratch } from '../../support/running/launch.ts';
import { startServer } from '../../support/running/server.ts';
import { find, makeIndex, put } from '../../support/running/requests.ts';

const scratch = await makeScratch();
const server = await startServer({ scratch, sharedEncoder: true });

afterAll(async () => {
  await scratch.remove();
});

const guide = await documentText('guide/operate.md');

/** Runs the commands under a heading; their folder `data` is the server's. */
const runBlock = (heading: string): Promise<string> =>
  runCommands(
    new RegExp(`## ${heading}[\\s\\S]*?\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1] ?? '',
    scratch.root,
  );

test('the example of a backup makes a directory that a server serves as before', async () => {
  const { client, key } = await createTenant(server);
  const { id } = await makeIndex(client);
  await put(client, id, [
    { doc_id: 'whale', text: 'The blue whale is the largest animal.' },
    { doc_id: 'bee', text: 'Honey bees dance.' },
  ]);
  const { results } = await find(client, id, { query: 'insects' });
  expect(results.map(({ doc_id: docId }) => docId)).toEqual(['bee', 'whale']);
  const verified = /2 records of 1 segments of 1 indexes verified, 0 problems/;
  expect(await runBlock('Back up and restore')).toMatch(verified);
  expect(await runBlock('Upgrade')).toMatch(verified);
  expect((await stat(path.join(scratch.root, 'before-upgrade.tar'))).size).toBeGreaterThan(0);
  await server.stop();
  const again = await startServer({
    scratch: { ...scratch, data: path.join(scratch.root, 'restored') },
    sharedEncoder: true,
  });
  expect((await find(connect(again.url, key), id, { query: 'insects' })).results).toEqual(results);
  await again.stop();
});
