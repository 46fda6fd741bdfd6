/** An index belongs to one model version for good: a server of another version never answers for it. */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { connect, expectError, expectReply, type Client } from '../support/running/client.ts';
import { createTenant } from '../support/running/command-line.ts';
import {
  makeScratch,
  repositoryRoot,
  startServer,
  type Scratch,
  type ServerProcess,
} from '../support/running/server.ts';
import { find, makeIndex, put } from '../support/running/stage.ts';
import { index, indexList, type Index, type Ranked } from '../support/running/wire.ts';

const otherVersion = 'another-version';

describe('Model versions', () => {
  let scratch: Scratch;
  let server: ServerProcess;
  let client: Client;
  let old: Index;
  let before: Ranked;

  beforeAll(async () => {
    scratch = await makeScratch();
    const first = await startServer({ scratch });
    const tenant = await createTenant(first);
    old = await makeIndex(tenant.client);
    await put(tenant.client, old.id, [{ doc_id: 'a', text: 'river stone' }]);
    before = await find(tenant.client, old.id, { query: 'river' });
    await first.stop();
    const { model, model_version: version } = first.readyLine;
    const models = await copyModelAs(scratch, model, version);
    server = await startServer({
      scratch,
      env: { MAXSIMD_MODELS_DIR: models, MAXSIMD_MODEL: `${model}/${otherVersion}` },
    });
    client = connect(server.url, tenant.key);
  });

  afterAll(async () => {
    await server?.stop();
    await scratch.remove();
  });

  test('[decision-20] version not loaded 503', async () => {
    expect(server.readyLine.model_version).toBe(otherVersion);
    const refused = [
      await client.search(old.id, { query: 'river' }),
      await client.upsert(old.id, [{ doc_id: 'b', text: 'river' }]),
    ];
    for (const reply of refused) {
      expectError(reply, 503, 'service_unavailable');
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    // What needs no model works, and says which version the index has.
    expect(expectReply(await client.send('GET', `/v1/indexes/${old.id}`), index)).toEqual(old);
    expect(expectReply(await client.listIndexes(), indexList).data).toEqual([old]);
  });

  test('a new index gets the version that is served', async () => {
    const made = await makeIndex(client);
    expect(made).toMatchObject({ model: old.model, model_version: otherVersion });
    await put(client, made.id, [{ doc_id: 'a', text: 'river stone' }]);
    expect((await find(client, made.id, { query: 'river' })).results).toHaveLength(1);
  });

  test('the old version serves the index as before, when it is back', async () => {
    await server.stop();
    server = await startServer({ scratch });
    client = connect(server.url, client.key);
    expect((await find(client, old.id, { query: 'river' })).results).toEqual(before.results);
  });
});

/** A models directory that holds the model under another version. */
async function copyModelAs(scratch: Scratch, model: string, version: string): Promise<string> {
  const models = path.join(scratch.root, 'models');
  const copy = path.join(models, model, otherVersion);
  await mkdir(path.dirname(copy), { recursive: true });
  await cp(path.join(repositoryRoot, 'models', model, version), copy, { recursive: true });
  const manifestFile = path.join(copy, 'manifest.json');
  const manifest = JSON.parse(await readFile(manifestFile, 'utf8')) as Record<string, unknown>;
  await writeFile(manifestFile, JSON.stringify({ ...manifest, version: otherVersion }));
  return models;
}
