/** Runs the commands of the guides for tenants and for imports as they stand there. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { newDirectory } from '../../support/machine/temporary-directory.ts';
import { expectReply } from '../../support/running/client.ts';
import { documentCommands, runCommands } from './document-commands.ts';
import { repositoryRoot } from '../../support/running/launch.ts';
import { useSharedStage } from '../../support/running/stage.ts';
import { indexList } from '../../support/running/wire.ts';

const stage = useSharedStage();

test('the commands for tenants and keys run one after the other', async () => {
  const folder = await newDirectory();
  const printed = await runCommands(await documentCommands('guide/tenants.md'), folder);
  expect(printed.match(/qkv_live_\S+/g)).toHaveLength(2);
  expect(printed).toMatch(/requests per minute +60\b/);
  expect(await readFile(path.join(folder, 'november.csv'), 'utf8')).toMatch(/^tenant_id,tenant,day,/);
});

test('the commands of imports find what the page says', async () => {
  const { key, client } = await stage.newTenant();
  const printed = await runCommands(await documentCommands('guide/import.md'), repositoryRoot, {
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: key,
    XDG_STATE_HOME: await newDirectory(),
  });
  expect(printed).toMatch(/^ +1 +[\d.]+ +laptops /m);
  expect(printed.match(/^documents +\d+ \(a dry run: nothing was sent\)$/gm)).toHaveLength(2);
  const { data } = expectReply(await client.listIndexes(), indexList);
  expect(data.map(({ name }) => name)).toEqual(['handbook', 'notes', 'manuals']);
});

test('the commands of codes and names find what the page says', async () => {
  const { key } = await stage.newTenant();
  const printed = await runCommands(await documentCommands('guide/codes.md'), repositoryRoot, {
    MAXSIMD_URL: stage.server.url,
    MAXSIMD_API_KEY: key,
    XDG_STATE_HOME: await newDirectory(),
  });
  const results = [...printed.matchAll(/^\{.*"results":.*$/gm)].map(
    ([answer]) => (JSON.parse(answer) as { readonly results: readonly CodeResult[] }).results,
  );
  expect(results.map(([first]) => first?.doc_id)).toEqual(['2', '1', '3']);
  expect(results[0]).toHaveLength(1);
  expect(results[1]?.[0]?.components?.matches).toMatchObject([{ field: 'part', value: 'NE-555P' }]);
  expect(printed).toMatch(/^identifiers +3 in 1 documents$/m);
  expect(printed).toMatch(/^ +1 +[\d.]+ +page 1 /m);
});

interface CodeResult {
  readonly doc_id: string;
  readonly components?: { readonly matches: readonly object[] };
}
