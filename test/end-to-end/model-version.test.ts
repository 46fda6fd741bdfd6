/**
 * An index belongs to one model version for good: that version is loaded when the index is used, and no other one ever
 * answers in its place.
 */
import { cp, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

import { connect, expectError, expectReply, type Client } from '../support/running/client.ts';
import { createTenant, runJson } from '../support/commands/command-line.ts';
import { eventually } from '../support/running/eventually.ts';
import { encodersOf } from '../support/running/processes.ts';
import { makeScratch, repositoryRoot, type Scratch } from '../support/running/launch.ts';
import { startServer, type ServerProcess } from '../support/running/server.ts';
import { find, makeIndex, put } from '../support/running/requests.ts';
import { index, indexList, type Index } from '../support/running/wire.ts';

const tiny = path.join(repositoryRoot, 'test/fixtures/colbert-tiny/1');
const documents = [
  { doc_id: 'a', text: 'the late interaction of token vectors' },
  { doc_id: 'b', text: 'small models over every document' },
];
const query = { query: 'token vectors', return_components: false };

describe('Model versions', () => {
  let scratch: Scratch;
  let server: ServerProcess;
  let client: Client;
  let models: string;
  const indexes: Record<'usual' | 'one' | 'two', Index> = {} as never;

  beforeAll(async () => {
    scratch = await makeScratch();
    // Where models are that no variable names.
    models = path.join(scratch.data, 'models');
    await mkdir(path.join(models, 'colbert-tiny'), { recursive: true });
    for (const version of ['1', '2']) {
      await cp(tiny, path.join(models, 'colbert-tiny', version), { recursive: true });
    }
    // An export that nobody installed.
    await cp(tiny, path.join(models, 'flat-export'), { recursive: true });
    const env = { MAXSIMD_MODEL: 'minilm-l6-maxsim' };
    server = await startServer({ scratch, env, constants: { modelIdleMs: 2_000 } });
    ({ client } = await createTenant(server));
  });

  afterAll(async () => {
    await server?.stop();
    await scratch.remove();
  });

  const search = async (indexId: string) =>
    eventually(async () => {
      const reply = await client.search(indexId, query);
      if (reply.status === 200) return find(client, indexId, query);
      // Its encoder starts, on a slow machine for longer than a request waits.
      expectError(reply, 503, 'service_unavailable');
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      return undefined;
    });

  const create = async (body: object): Promise<Index> =>
    eventually(async () => {
      const reply = await client.createIndex({ name: JSON.stringify(body), ...body });
      return reply.status === 503 ? undefined : expectReply(reply, index, 201);
    });

  test('any installed model makes an index, and a version where there are several', async () => {
    indexes.usual = await makeIndex(client);
    expect(indexes.usual).toMatchObject({ model: 'minilm-l6-maxsim', model_version: '1' });
    indexes.two = await create({ model: 'colbert-tiny' });
    expect(indexes.two.model_version).toBe('2');
    indexes.one = await create({ model: 'colbert-tiny', model_version: '1' });
    expect(indexes.one.model_version).toBe('1');
    for (const { id } of Object.values(indexes)) {
      await search(id);
      await put(client, id, documents);
      expect((await search(id)).results[0]?.doc_id).toBe('a');
    }
  });

  test('what is not installed is refused by name', async () => {
    for (const [body, field] of [
      [{ model: 'colbert-huge' }, 'model'],
      [{ model: 'flat-export' }, 'model'],
      [{ model: 'colbert-tiny', model_version: '3' }, 'model_version'],
      [{ model_version: '3' }, 'model_version'],
    ] as const) {
      const reply = await client.createIndex({ name: 'refused', ...body });
      const refusal = expectError(reply, 422, 'validation_error');
      expect(refusal.issues?.map((issue) => issue.path)).toEqual([field]);
    }
    expect(server.output().stderr).toContain('flat-export');
  });

  test('a model without indexes is unloaded', async () => {
    const version = '3';
    await cp(tiny, path.join(models, 'colbert-tiny', version), { recursive: true });
    const short = await create({ model: 'colbert-tiny', model_version: version });
    await eventually(async () => (await encodersOf(server.pid)).length === 4);
    expect((await client.send('DELETE', `/v1/indexes/${short.id}`)).status).toBe(200);
    await eventually(async () => (await encodersOf(server.pid)).length === 3);
    await rm(path.join(models, 'colbert-tiny', version), { recursive: true });
  });

  test('another default model leaves the old indexes as they are: their models serve from the start', async () => {
    const before = await search(indexes.usual.id);
    await server.stop();
    server = await startServer({ scratch });
    client = connect(server.url, client.key);
    expect(server.readyLine.model).toBe('bge-small-maxsim');
    expect((await find(client, indexes.usual.id, query)).results).toEqual(before.results);
    expect(await makeIndex(client, { name: 'new' })).toMatchObject({
      model: 'bge-small-maxsim',
      model_version: '2',
    });
  });

  test('[decision-20] version not loaded 503: one that is gone says so wherever one looks', async () => {
    await server.stop();
    await rm(path.join(models, 'colbert-tiny/2'), { recursive: true });
    server = await startServer({ scratch });
    client = connect(server.url, client.key);
    const { id } = indexes.two;
    const refused = [await client.search(id, query), await client.upsert(id, documents)];
    for (const reply of refused) {
      const { message } = expectError(reply, 503, 'service_unavailable');
      expect(message).toContain('colbert-tiny version 2');
      expect(message).toContain('not installed');
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    expect(server.output().stderr).toMatch(/"model_version":"2".*not installed/);
    const inspected = await runJson(
      scratch.data,
      ['index', 'inspect'],
      z.object({ data: z.array(z.looseObject({ index_id: z.string(), model_installed: z.boolean() })) }),
    );
    const missing = inspected.data.filter((each) => !each.model_installed);
    expect(missing.map((each) => each.index_id)).toEqual([id]);
    // Operations that need no model work, and answer with the version of the index.
    expect(expectReply(await client.send('GET', `/v1/indexes/${id}`), index)).toEqual({
      ...indexes.two,
      recall: null,
    });
    expect(expectReply(await client.listIndexes(), indexList).data).toContainEqual(indexes.two);
    expect((await search(indexes.one.id)).results[0]?.doc_id).toBe('a');

    // Back, without a restart.
    await cp(tiny, path.join(models, 'colbert-tiny/2'), { recursive: true });
    expect((await search(id)).results[0]?.doc_id).toBe('a');
  });
});
