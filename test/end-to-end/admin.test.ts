/** The admin API of a real service, and the command line that uses it from elsewhere: with its address alone, without the data directory. */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { call, connect } from '../support/running/client.ts';
import { runCommand } from '../support/commands/command-line.ts';
import { eventually, within } from '../support/running/eventually.ts';
import { launchServer } from '../support/running/launch.ts';
import { useAdminServer } from '../support/running/server.ts';
import { makeIndex, put } from '../support/running/requests.ts';

/** Services follow what operators do within so long. */
const followMs = 5_000;
/** The fields of the printed documents that these tests read. */
const printed = z.object({
  tenant_id: z.string().default(''),
  api_key: z.string().default(''),
  data: z.array(z.looseObject({})).default([]),
});
const { operatorKey, adminUrl, server } = useAdminServer();

/** From a machine that has nothing but an address and a key. */
async function administer(...args: readonly string[]): Promise<z.output<typeof printed>> {
  const env = {
    MAXSIMD_DATA_DIR: path.join(server().scratch.root, 'elsewhere'),
    MAXSIMD_ADMIN_URL: adminUrl(),
    MAXSIMD_ADMIN_KEY: operatorKey,
  };
  const { exitCode, stdout, stderr } = await runCommand([...args, '--json'], env);
  expect(exitCode, stdout + stderr).toBe(0);
  return printed.parse(JSON.parse(stdout));
}

describe('the admin API', () => {
  test('makes tenants that use the service at once, and is followed in what it takes away', async () => {
    const created = await administer('tenant', 'create', '--name', 'far', '--requests-per-minute', '1000');
    const { tenant_id: id, api_key: key } = created;
    const client = connect(server().url, key);
    const { id: index } = await makeIndex(client);
    await put(client, index, [{ doc_id: 'bee', text: 'Honey bees dance.' }]);

    const { data: days } = await administer('tenant', 'usage', 'far');
    const { body: month } = await call(`${server().url}/v1/usage`, { key });
    const { usage } = month as { usage: { input_tokens: string; document_upserts: number } };
    expect(days).toHaveLength(1);
    expect(days[0]).toMatchObject({ input_tokens: usage.input_tokens, document_upserts: 1 });

    const follows = (status: number): Promise<unknown> =>
      eventually(async () => (await call(`${server().url}/v1/indexes`, { key })).status === status, {
        withinMs: followMs,
      });
    await administer('tenant', 'suspend', id);
    await follows(403);
    await administer('tenant', 'resume', id);
    await follows(200);
    const { data: keys } = await administer('key', 'list', id);
    await administer('key', 'revoke', String(keys[0]?.['key_id']));
    await follows(401);
    await administer('tenant', 'delete', id, '--yes');

    const { data: acts } = await administer('audit', '--tenant', id);
    expect(acts.map((act) => [act['actor'], act['act']])).toEqual(
      ['tenant_deleted', 'key_revoked', 'tenant_resumed', 'tenant_suspended', 'tenant_created'].map((act) => [
        `operator:${createHash('sha256').update(operatorKey).digest('hex').slice(0, 16)}`,
        act,
      ]),
    );
  });

  test('is not at the address that tenants know', async () => {
    for (const key of [operatorKey, 'x'])
      expect((await call(`${server().url}/admin/v1/tenants`, { key })).status).toBe(404);
  });

  test('says what is wrong with the key of an operator', async () => {
    const env = { MAXSIMD_ADMIN_URL: adminUrl() };
    const without = await runCommand(['tenant', 'list'], env);
    expect(without.exitCode).toBe(2);
    expect(without.stderr).toContain('--admin-key');
    const wrong = await runCommand(['tenant', 'list'], { ...env, MAXSIMD_ADMIN_KEY: 'x'.repeat(32) });
    expect(wrong.exitCode).toBe(1);
    expect(wrong.stderr).toContain('401 authentication_failed');
  });
});

test.each([
  ['no file', {}, 'MAXSIMD_ADMIN_PORT needs MAXSIMD_ADMIN_KEY_FILE'],
  ['a file that is not there', { MAXSIMD_ADMIN_KEY_FILE: '/nowhere/at/all' }, 'cannot read /nowhere/at/all'],
  ['an empty file', { MAXSIMD_ADMIN_KEY_FILE: '/dev/null' }, 'the file holds no key'],
  [
    'an open network',
    { MAXSIMD_ADMIN_KEY_FILE: '/dev/null', MAXSIMD_ADMIN_HOST: '0.0.0.0' },
    'MAXSIMD_ADMIN_HOST: 0.0.0.0 is not a loopback address',
  ],
])('a start with %s is refused', async (_what, env, reason) => {
  const launch = await launchServer({ env: { MAXSIMD_ADMIN_PORT: '0', ...env } });
  launch.ready.catch(() => undefined);
  const { code } = await within('the end of the start', launch.exited);
  expect(code).toBe(2);
  expect(launch.output().stderr).toContain(reason);
  await launch.scratch.remove();
});
