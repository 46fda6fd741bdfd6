/** Tenants, keys and models through the command line as processes, on a data directory of their own. */
import { cpSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runJson, runJsonHere } from '../support/commands/command-process.ts';
import { runHere, type RunOptions } from '../support/commands/command-here.ts';
import { furtherModels } from '../../src/process/installation.ts';
import { nameTenant } from '../support/stages/older-names.ts';

let directory: string;
let options: RunOptions;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-tenants-'));
  options = { environment: { MAXSIMD_DATA_DIR: path.join(directory, 'data') } };
});

afterEach(() => rmSync(directory, { recursive: true }));

const unknownId = '00000000-0000-4000-8000-00000000dead';
const json = (...args: string[]): ReturnType<typeof runJsonHere> => runJsonHere(args, options);
const create = async (...more: string[]): Promise<{ tenant_id: string; api_key: string }> =>
  (await json('tenant', 'create', '--name', 'Acme', ...more)).document;

describe('tenant create', () => {
  it('prints the tenant, its key and the default limits', async () => {
    const { exitCode, document, stderr } = await json('tenant', 'create', '--name', 'Acme');
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    expect(document).toEqual({
      tenant_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Acme',
      api_key: expect.stringMatching(/^qkv_live_/),
      limits: {
        requests_per_minute: 60,
        max_concurrent_requests: 2,
        input_tokens: '50000000',
        documents: 100_000,
      },
      unlimited: [],
    });
  });

  it.each([
    ['created so', ['--unlimited'], []],
    ['changed so', [], ['--unlimited']],
  ])('has no allowances that nobody chose, %s', async (_when, created, changed) => {
    const { tenant_id: id } = await create(...created);
    const { document } = await json('tenant', 'limits', id, ...changed);
    expect(document).toMatchObject({
      limits: {
        requests_per_minute: 60,
        max_concurrent_requests: 2,
        input_tokens: '9223372036854775807',
        documents: 9_007_199_254_740_991,
      },
      unlimited: ['input_tokens', 'documents'],
    });
    const { stdout } = await runHere(['tenant', 'list'], options);
    expect(stdout).toMatch(/Acme +active +60 +2 +unlimited +unlimited /);
    const again = await json('tenant', 'limits', id, '--input-tokens', '7', '--max-concurrent-requests', '3');
    expect(again.document).toMatchObject({ limits: { input_tokens: '7' }, unlimited: ['documents'] });
  });

  it('refuses an allowance beside none', async () => {
    const { exitCode } = await json('tenant', 'create', '--name', 'Acme', '--unlimited', '--documents', '5');
    expect(exitCode).toBe(2);
  });

  it('takes limits of its own, token totals beyond 2^53 to the digit', async () => {
    const limits =
      '--requests-per-minute 600 --max-concurrent-requests 8 --input-tokens 9007199254740993 --documents 5';
    const { document } = await json('tenant', 'create', '--name', 'Acme', ...limits.split(' '));
    expect(document.limits).toEqual({
      requests_per_minute: 600,
      max_concurrent_requests: 8,
      input_tokens: '9007199254740993',
      documents: 5,
    });
  });

  it.each([
    ['a name that another tenant has', 'Acme', 'a tenant with this name exists'],
    ['a control character', 'a\u0007b', 'the name of a tenant must not hold the control character U+0007'],
  ])('refuses %s', async (_what, name, message) => {
    await create();
    const { exitCode, document } = await json('tenant', 'create', '--name', name);
    expect(exitCode).toBe(1);
    expect(document.error).toEqual({ code: 'validation_error', message: expect.stringContaining(message) });
    expect((await json('tenant', 'list')).document.data).toHaveLength(1);
  });

  it('makes a data directory that only its owner can enter', async () => {
    await create();
    expect(statSync(path.join(directory, 'data')).mode & 0o777).toBe(0o700);
  });

  it('shows people the key once', async () => {
    const { stdout } = await runHere(['tenant', 'create', '--name', 'Acme'], options);
    expect(stdout).toMatch(/^tenant +[0-9a-f-]{36} \(Acme\)\nAPI key +qkv_live_\S+\n/);
    const list = await runHere(['tenant', 'list'], options);
    expect(list.stdout).not.toContain('qkv_live_');
  });
});

describe('tenants', () => {
  it('are listed, suspended, resumed', async () => {
    const { tenant_id: id } = await create();
    expect((await json('tenant', 'suspend', id)).document).toMatchObject({ tenant_id: id, suspended: true });
    expect((await json('tenant', 'list')).document.data).toMatchObject([
      { tenant_id: id, name: 'Acme', suspended: true },
    ]);
    expect((await runHere(['tenant', 'list'], options)).stdout).toMatch(
      /Acme +suspended +60 +2 +50000000 +100000 /,
    );
    expect((await json('tenant', 'resume', id)).document).toMatchObject({ tenant_id: id, suspended: false });
  });

  it('keep the limits that a change does not name', async () => {
    const { tenant_id: id } = await create();
    const changed = await json('tenant', 'limits', id, '--documents', '7', '--input-tokens', '0');
    const limits = { requests_per_minute: 60, max_concurrent_requests: 2, input_tokens: '0', documents: 7 };
    expect(changed.document.limits).toEqual(limits);
    expect((await json('tenant', 'limits', id)).document.limits).toEqual(limits);
  });

  it('are erased only when somebody agrees', async () => {
    const { tenant_id: id } = await create();
    const asked = await json('tenant', 'delete', id);
    expect(asked.exitCode).toBe(2);
    expect(asked.document.error.message).toMatch(/--yes/);
    const erased = await json('tenant', 'delete', id, '--yes');
    expect(erased.document).toMatchObject({ tenant_id: id, deleted: true });
    expect((await json('tenant', 'list')).document).toEqual({ data: [] });
  });

  it('that are not there: commands say so with exit code 1', async () => {
    await create();
    for (const [command, ...more] of [['suspend'], ['resume'], ['limits'], ['delete', '--yes']]) {
      const { exitCode, document } = await json('tenant', command!, unknownId, ...more);
      expect(exitCode).toBe(1);
      expect(document.error).toEqual({ code: 'not_found', message: `there is no tenant ${unknownId}` });
    }
  });

  it('are called by an identifier in either case', async () => {
    const { tenant_id: id } = await create();
    const { document } = await json('tenant', 'suspend', id.toUpperCase());
    expect(document).toMatchObject({ tenant_id: id, suspended: true });
  });

  it('are called by name, as long as one alone has it', async () => {
    const { tenant_id: id } = await create();
    await json('tenant', 'create', '--name', 'Other');
    expect((await json('tenant', 'suspend', 'Acme')).document).toMatchObject({
      tenant_id: id,
      suspended: true,
    });
    expect((await json('key', 'create', 'Acme')).document.api_key).toMatch(/^qkv_live_/);
    expect((await json('key', 'list', 'Acme')).document.data).toHaveLength(2);
    // An older release made a second one.
    const { tenant_id: second } = (await json('tenant', 'create', '--name', 'Second')).document;
    await nameTenant(path.join(directory, 'data'), second, 'Acme');
    for (const args of [
      ['tenant', 'limits', 'Acme'],
      ['tenant', 'delete', 'Acme', '--yes'],
      ['key', 'list', 'Acme'],
    ]) {
      const { exitCode, document } = await json(...args);
      expect(exitCode).toBe(1);
      expect(document.error.code).toBe('ambiguous');
      expect(document.error.message).toContain(id);
      expect(document.error.message).toContain(second);
    }
    expect((await json('tenant', 'delete', id, '--yes')).document).toMatchObject({ deleted: true });
    expect((await json('tenant', 'resume', 'Acme')).document).toMatchObject({ tenant_id: second });
  });

  it('can be made at the same time by several processes', async () => {
    const names = ['one', 'two', 'three', 'four'];
    await Promise.all(names.map((name) => json('tenant', 'create', '--name', name)));
    expect((await json('tenant', 'list')).document.data).toHaveLength(4);
  });
});

describe('keys', () => {
  it('are made, listed and revoked; ten live ones are the most', async () => {
    const { tenant_id: id } = await create();
    const second = await json('key', 'create', id);
    expect(second.document).toEqual({
      key_id: expect.any(String),
      api_key: expect.stringMatching(/^qkv_live_/),
      access: 'full',
    });
    for (let keys = 2; keys < 10; keys += 1) expect((await json('key', 'create', id)).exitCode).toBe(0);
    const eleventh = await json('key', 'create', id);
    expect(eleventh.exitCode).toBe(1);
    expect(eleventh.document.error).toEqual({
      code: 'too_many_keys',
      message: 'the tenant already has 10 live keys, which is the most: revoke one first',
    });

    const keyId: string = second.document.key_id;
    const revoked = await json('key', 'revoke', keyId);
    expect(revoked.document).toMatchObject({ key_id: keyId, tenant_id: id, revoked_at: expect.any(String) });
    const list = await json('key', 'list', id);
    expect(list.document.data).toHaveLength(10);
    expect(list.document.data).toContainEqual(
      expect.objectContaining({ key_id: keyId, last_used_at: null, revoked_at: expect.any(String) }),
    );
    expect(list.stdout).not.toContain('qkv_live_');
    expect((await json('key', 'create', id)).exitCode).toBe(0);
  });

  it('have a name, which is shown, and say so where it cannot be one', async () => {
    const { tenant_id: id } = await create();
    const made = await json('key', 'create', id, '--name', 'nightly import');
    expect(made.document).toMatchObject({ name: 'nightly import', access: 'full' });
    const { data } = (await json('key', 'list', id)).document;
    expect(data).toContainEqual(
      expect.objectContaining({ key_id: made.document.key_id, name: 'nightly import' }),
    );
    expect((await runHere(['key', 'list', id], options)).stdout).toMatch(/ nightly import +full /);
    const shown = await runHere(['key', 'create', id, '--name', 'ci'], options);
    expect(shown.stdout).toMatch(/^key +\w+\nname +ci\nAPI key +qkv_live_/);
    for (const [name, exitCode, code] of [
      ['', 2, 'usage_error'],
      ['x'.repeat(65), 1, 'validation_error'],
      ['a\nb', 1, 'validation_error'],
    ] as const) {
      const refused = await json('key', 'create', id, '--name', name);
      expect([refused.exitCode, refused.document.error.code]).toEqual([exitCode, code]);
    }
  });

  it('have limits of their own, which are shown', async () => {
    const { tenant_id: id } = await create();
    const limits = { requests_per_minute: 30, max_concurrent_requests: 1 };
    const flags = ['--requests-per-minute', '30', '--max-concurrent-requests', '1'];
    const made = await json('key', 'create', id, ...flags);
    expect(made.document).toMatchObject(limits);
    const { data } = (await json('key', 'list', id)).document;
    expect(data).toContainEqual(expect.objectContaining({ key_id: made.document.key_id, ...limits }));
    expect((await runHere(['key', 'list', id], options)).stdout).toMatch(/full +30 +1 +2/);
  });

  it('of a tenant that is not there, or that are not there, say so', async () => {
    await create();
    for (const args of [
      ['create', unknownId],
      ['list', unknownId],
      ['revoke', 'nokey'],
    ]) {
      const { exitCode, document } = await json('key', ...args);
      expect(exitCode).toBe(1);
      expect(document.error.code).toBe('not_found');
    }
  });
});

describe('a folder in which no service keeps its data', () => {
  it.each([
    ['tenant list'],
    ['tenant suspend x'],
    ['tenant resume x'],
    ['tenant limits x'],
    ['tenant delete x --yes'],
    ['key create x'],
    ['key list x'],
    ['key revoke x'],
    ['key reset --yes'],
    ['index inspect'],
    ['index verify'],
    ['index compact'],
  ])('%s says so with exit code 1, and makes no data directory', async (command) => {
    const { exitCode, document } = await runJson(command.split(' '), {
      cwd: directory,
      environment: { MAXSIMD_DATA_DIR: 'data' },
    });
    expect(exitCode).toBe(1);
    const place = path.join(realpathSync(directory), 'data');
    expect(document.error).toEqual({
      code: 'not_found',
      message: `there is no catalog in ${place}: MAXSIMD_DATA_DIR says where the service keeps its data`,
    });
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('models', () => {
  const models = path.resolve(import.meta.dirname, '../../models');

  it('of the package are listed, and intact', async () => {
    const list = await json('models', 'list');
    expect(list.document.data.length).toBeGreaterThan(0);
    expect(list.document.data[0]).toMatchObject({ name: expect.any(String), version: expect.any(String) });
    const verified = await json('models', 'verify');
    expect(verified.document).toMatchObject({ damaged: 0 });
    expect(verified.exitCode).toBe(0);
  });

  it("of a folder of one's own are listed with those of the package, by name", async () => {
    const own = path.join(directory, 'models');
    const tiny = path.resolve(import.meta.dirname, '../fixtures/colbert-tiny/1');
    cpSync(tiny, path.join(own, 'colbert-tiny/1'), { recursive: true });
    cpSync(tiny, path.join(own, 'an-export'), { recursive: true });
    options = { environment: { ...options.environment, MAXSIMD_MODELS_DIR: own } };
    const { document } = await json('models', 'list');
    const names = new Set(document.data.map(({ name }: { name: string }) => name));
    expect([...names].filter((name) => !furtherModels.includes(name as string))).toEqual([
      'bge-small-maxsim',
      'colbert-tiny',
      'minilm-l6-maxsim',
    ]);
    // A model that this checkout has not built.
    expect(document.available).toEqual(furtherModels.filter((name) => !names.has(name)));
    expect(document.not_installed).toEqual([path.join(own, 'an-export')]);
    const printed = await runHere(['models', 'list'], options);
    expect(printed.stdout).toContain('maxsimd models add');
  });

  it('with a changed file are found damaged, with exit code 1', async () => {
    const copy = path.join(directory, 'models');
    const { document } = await json('models', 'list');
    const { name, version } = document.data[0];
    cpSync(path.join(models, name, version), path.join(copy, name, version), { recursive: true });
    options = { environment: { ...options.environment, MAXSIMD_MODELS_DIR: copy } };
    expect((await json('models', 'verify')).exitCode).toBe(0);
    writeFileSync(path.join(copy, name, version, 'tokenizer.json'), '{}');
    const verified = await json('models', 'verify');
    expect(verified.exitCode).toBe(1);
    expect(verified.document.data[0]).toMatchObject({
      ok: false,
      problem: expect.stringContaining('sha256'),
    });
  });
});
