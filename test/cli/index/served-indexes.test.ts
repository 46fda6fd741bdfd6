/** `maxsimd index list|delete` and `maxsimd usage`: through the HTTP API. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiDouble, errorReply } from '../../support/http/api-double.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';
import { runHere, type RunOptions } from '../../support/commands/command-here.ts';

const id = '00000000-0000-4000-8000-0000000000aa';
let api: ApiDouble;
let options: RunOptions;

beforeEach(async () => {
  api = new ApiDouble();
  options = { environment: { MAXSIMD_URL: await api.listen(), MAXSIMD_API_KEY: 'qkv_live_test' } };
  api.addIndex('books', id);
  api.addIndex('films', '00000000-0000-4000-8000-0000000000bb');
});

afterEach(() => api.close());

describe('index list', () => {
  it('shows the indexes of the tenant, as the API tells them', async () => {
    const { exitCode, document } = await runJsonHere(['index', 'list'], options);
    expect(exitCode).toBe(0);
    expect(document.data).toEqual(api.indexes);
    const { stdout } = await runHere(['index', 'list'], options);
    expect(stdout).toMatch(
      /^name +index +status +model +created +match fields\nbooks +0{8}-\S+ +ready +words\/1 +2026-/,
    );
  });
});

describe('index create and index update', () => {
  it('set and clear match fields', async () => {
    const more = ['--model', 'words/1', '--match-fields', 'code, part.number'];
    const { document } = await runJsonHere(['index', 'create', 'parts', ...more], options);
    expect(document).toMatchObject({ name: 'parts', match_fields: ['code', 'part.number'] });
    expect(api.requests.at(-1)?.body).toEqual({
      name: 'parts',
      model: 'words',
      model_version: '1',
      match_fields: ['code', 'part.number'],
    });
    const { stdout } = await runHere(['index', 'list'], options);
    expect(stdout).toMatch(/\nparts .* code, part\.number\n/);
    const told = await runHere(['index', 'update', 'books', '--match-fields', 'isbn'], options);
    expect(told.stdout).toMatch(/^index books \(0{8}-\S+\) has the match fields isbn now\n/);
    const cleared = await runHere(['index', 'update', 'books', '--no-match-fields'], options);
    expect(cleared.stdout).toContain('has no match fields now');
    expect(api.indexes[0]).toMatchObject({ name: 'books', match_fields: [] });
    expect((await runHere(['index', 'update', 'books'], options)).exitCode).toBe(2);
  });
});

describe('index rename', () => {
  it('gives an index another name, by name or id', async () => {
    const renamed = await runJsonHere(['index', 'rename', 'books', 'novels'], options);
    expect(renamed.document).toMatchObject({ id, name: 'novels' });
    const { stdout } = await runHere(['index', 'rename', id, 'poems'], options);
    expect(stdout).toMatch(/^index novels \(0{8}-\S+\) is called poems now\n/);
    expect(api.indexes.map(({ name }) => name)).toEqual(['poems', 'films']);
    const { exitCode, document } = await runJsonHere(['index', 'rename', 'books', 'novels'], options);
    expect([exitCode, document.error.code]).toEqual([1, 'not_found']);
    // An identifier goes before a name that looks like one.
    await runHere(['index', 'rename', 'films', id], options);
    expect((await runJsonHere(['index', 'rename', id, 'plays'], options)).document).toMatchObject({ id });
  });
});

describe('index swap', () => {
  it('gives each of two indexes the name of the other', async () => {
    const { document } = await runJsonHere(['index', 'swap', 'books', api.indexes[1]!.id], options);
    expect(document.data.map(({ id: index, name }: { id: string; name: string }) => [index, name])).toEqual([
      [id, 'films'],
      [api.indexes[1]!.id, 'books'],
    ]);
    expect(api.indexes.map(({ name }) => name)).toEqual(['films', 'books']);
    expect((await runHere(['index', 'swap', 'books', 'films'], options)).exitCode).toBe(0);
    expect(api.indexes.map(({ name }) => name)).toEqual(['books', 'films']);
  });

  it('is never sent twice, which would undo it', async () => {
    api.intercept = ({ method }) => (method === 'PATCH' ? errorReply(503, 'service_unavailable') : undefined);
    const { exitCode, document } = await runJsonHere(['index', 'swap', 'books', 'films'], options);
    expect([exitCode, document.error.code]).toEqual([1, 'service_unavailable']);
    expect(api.requests.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
  });
});

describe('index delete', () => {
  it('erases an index by name or id, once somebody agrees', async () => {
    const asked = await runJsonHere(['index', 'delete', 'books'], options);
    expect(asked.exitCode).toBe(2);
    expect(asked.document.error.message).toMatch(/--yes/);
    expect(api.indexes).toHaveLength(2);
    const erased = await runJsonHere(['index', 'delete', 'books', '--yes'], options);
    expect(erased.document).toEqual({ index_id: id, name: 'books', deleted: true });
    expect(api.indexes.map(({ name }) => name)).toEqual(['films']);
    const { exitCode } = await runHere(['index', 'delete', api.indexes[0]!.id, '--yes'], options);
    expect(exitCode).toBe(0);
    expect(api.indexes).toEqual([]);
  });

  it('of an index that is not there says so', async () => {
    const { exitCode, document } = await runJsonHere(['index', 'delete', 'nowhere', '--yes'], options);
    expect(exitCode).toBe(1);
    expect(document.error.code).toBe('not_found');
  });
});

describe('usage', () => {
  it('shows what was used, the limits and what remains, totals to the digit', async () => {
    const { document } = await runJsonHere(['usage'], options);
    expect(document).toMatchObject({
      usage: { input_tokens: '9007199254740993' },
      limits: { unknown: true },
    });
    const { stdout, exitCode } = await runHere(['usage'], options);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^ +used +limit +remaining\n/);
    expect(stdout).toMatch(/^input tokens +9007199254740993 +50000000 +0$/m);
    expect(stdout).toMatch(/^requests a minute +60$/m);
    expect(stdout).toMatch(/^from 2026-11-01T00:00:00.000Z until 2026-12-01/m);
  });
});
