/** "Authentication": keys, suspension, isolation of tenants, keys made and revoked beside a running server. */
import { describe, expect, test } from 'vitest';

import {
  call,
  expectError,
  expectReply,
  connect,
  type Client,
  type Reply,
} from '../../support/running/client.ts';
import { eventually } from '../../support/running/eventually.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { indexList } from '../../support/running/wire.ts';

const stage = await useContractStage();
const absentIndex = '00000000-0000-4000-8000-000000000000';

/** Every endpoint of the API, called by one client on one index. */
function everyEndpoint(client: Client, indexId: string): Readonly<Record<string, () => Promise<Reply>>> {
  return {
    'create index': () => client.createIndex({ name: `made on ${indexId}` }),
    'list indexes': () => client.listIndexes(),
    'get index': () => client.send('GET', `/v1/indexes/${indexId}`),
    upsert: () => client.upsert(indexId, [{ doc_id: 'planted', text: 'river' }]),
    'delete document': () => client.deleteDocument(indexId, 'secret'),
    search: () => client.search(indexId, { query: 'river' }),
    score: () => client.score({ query: 'river', documents: [{ doc_id: 'a', text: 'stone' }] }),
    usage: () => client.usage(),
    'delete index': () => client.send('DELETE', `/v1/indexes/${indexId}`),
  };
}

describe('Authentication', () => {
  test('[authentication-1, endpoints-1] Every `/v1/*` request carries the header `Authorization: Bearer <API_KEY>` (HTTP bearer scheme). All `/v1/*` endpoints require authentication (see Authentication).', async () => {
    const { server, tenant } = stage;
    const { id } = await makeIndex(tenant.client);
    for (const attempt of Object.values(everyEndpoint(connect(server.url, ''), id))) {
      expectError(await attempt(), 401, 'authentication_failed');
    }
    const headers = [
      tenant.key,
      `Basic ${Buffer.from(`${tenant.key}:`).toString('base64')}`,
      `Bearer`,
      `Bearer ${tenant.key} ${tenant.key}`,
      `Token ${tenant.key}`,
    ];
    for (const authorization of headers) {
      expectError(
        await call(`${server.url}/v1/usage`, { headers: { authorization } }),
        401,
        'authentication_failed',
      );
    }
    const elsewhere = [`/v1/usage?api_key=${tenant.key}`, `/v1/usage?authorization=Bearer%20${tenant.key}`];
    for (const path of elsewhere)
      expectError(await call(`${server.url}${path}`), 401, 'authentication_failed');
    // The scheme's name has no case (RFC 9110, section 11.1).
    expect(
      (await call(`${server.url}/v1/usage`, { headers: { authorization: `bearer ${tenant.key}` } })).status,
    ).toBe(200);
  });

  test('[endpoints-2] Request and response bodies are `application/json`.', async () => {
    const { id } = await makeIndex(stage.client);
    for (const attempt of Object.values(everyEndpoint(stage.client, id))) {
      expect((await attempt()).headers.get('content-type')).toMatch(/^application\/json\b/);
    }
    const utf8 = await stage.client.send('POST', '/v1/score', {
      rawBody: JSON.stringify({ query: 'é', documents: [{ doc_id: 'ü', text: 'ß' }] }),
      headers: { 'content-type': 'application/json; charset=utf-8' },
    });
    expect(utf8.status).toBe(200);
    expect(utf8.text).toContain('"ü"');
  });

  test('[authentication-2] The API key is tenant-scoped and begins with the prefix `qkv_live_`. It is supplied during onboarding.', async () => {
    const tenant = await stage.newTenant();
    expect(tenant.key).toMatch(/^qkv_live_[A-Za-z0-9_-]+$/);
    expect((await tenant.client.usage()).status).toBe(200);
  });

  test('[authentication-3] The key is used from a trusted machine or backend and is never exposed in browser code.', async () => {
    // Nothing invites a browser: no cross-origin request is allowed.
    const headers = { origin: 'https://example.com', 'access-control-request-method': 'POST' };
    const preflight = await call(`${stage.server.url}/v1/score`, { method: 'OPTIONS', headers });
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
    const reply = await stage.client.send('GET', '/v1/usage', { headers: { origin: 'https://example.com' } });
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('[authentication-5] A missing, invalid or revoked key returns 401 with error code `authentication_failed`.', async () => {
    const { server, tenant } = stage;
    const { key } = tenant;
    const last = key.at(-1) === 'A' ? 'B' : 'A';
    const middle = Math.floor(key.length / 2);
    const swapped = key.slice(0, middle) + (key[middle] === 'x' ? 'y' : 'x') + key.slice(middle + 1);
    const invalid = [
      'x',
      'qkv_live_',
      'qkv_live_wrong',
      key.slice(0, -1),
      `${key}A`,
      key.slice(0, -1) + last,
      swapped,
      key.toUpperCase(),
      key.replace('qkv_live_', 'qkv_test_'),
      key.slice('qkv_live_'.length),
      'qkv_live_' + 'A'.repeat(4000),
      `qkv_live_'; DROP TABLE keys; --`,
    ];
    for (const wrong of invalid) {
      expectError(await connect(server.url, wrong).usage(), 401, 'authentication_failed');
    }
    expectError(await call(`${server.url}/v1/usage`), 401, 'authentication_failed');
    expect((await tenant.client.usage()).status).toBe(200);
  });

  test('a revoked key dies within 5 s, the tenant’s other key lives on', async () => {
    const tenant = await stage.newTenant();
    const second = await stage.newKey(tenant.id);
    const client = connect(stage.server.url, second.key);
    expect((await client.usage()).status).toBe(200);
    await stage.operate('key', 'revoke', second.id);
    const reply = await eventually(
      async () => {
        const answer = await client.usage();
        return answer.status === 200 ? undefined : answer;
      },
      { withinMs: 5000 },
    );
    expectError(reply, 401, 'authentication_failed');
    expect((await tenant.client.usage()).status).toBe(200);
  });

  test('[decision-39] keys are shown once; ten live keys a tenant', async () => {
    const tenant = await stage.newTenant();
    const second = await stage.newKey(tenant.id);
    for (let keys = 2; keys < 10; keys += 1) await stage.newKey(tenant.id);
    const eleventh = await stage.run(['key', 'create', tenant.id, '--json']);
    expect(eleventh.exitCode).not.toBe(0);
    for (const args of [
      ['key', 'list', tenant.id, '--json'],
      ['tenant', 'list', '--json'],
    ]) {
      const shown = await stage.run(args);
      expect(shown.exitCode).toBe(0);
      for (const key of [tenant.key, second.key]) {
        expect(shown.stdout + shown.stderr).not.toContain(key);
        expect(shown.stdout + shown.stderr).not.toContain(key.slice(-24));
      }
    }
    // Rotation: a revoked key makes room.
    await stage.operate('key', 'revoke', second.id);
    expect((await stage.newKey(tenant.id)).key).toMatch(/^qkv_live_/);
  });

  test('[authentication-6, errors-4] A suspended tenant returns 403 with error code `tenant_suspended`.', async () => {
    const tenant = await stage.newTenant();
    const { id } = await makeIndex(tenant.client);
    await put(tenant.client, id, [{ doc_id: 'a', text: 'river' }]);
    await stage.operate('tenant', 'suspend', tenant.id);
    await eventually(async () => (await tenant.client.usage()).status === 403, { withinMs: 5000 });
    for (const attempt of Object.values(everyEndpoint(tenant.client, id))) {
      expectError(await attempt(), 403, 'tenant_suspended');
    }
    await stage.operate('tenant', 'resume', tenant.id);
    await eventually(async () => (await tenant.client.usage()).status === 200, { withinMs: 5000 });
    expect((await find(tenant.client, id, { query: 'river' })).results).toHaveLength(1);
  });

  test('[authentication-7] Resources are tenant-scoped; a resource of another tenant is reported as not found (404 `not_found`).', async () => {
    const owner = await stage.newTenant();
    const stranger = await stage.newTenant();
    const { id } = await makeIndex(owner.client);
    await put(owner.client, id, [{ doc_id: 'secret', text: 'river' }]);
    const attempts = everyEndpoint(stranger.client, id);
    const absent = everyEndpoint(stranger.client, absentIndex);
    for (const name of ['get index', 'upsert', 'delete document', 'search', 'delete index']) {
      const reply = await attempts[name]?.();
      const unknown = await absent[name]?.();
      if (reply === undefined || unknown === undefined) throw new Error(`no endpoint ${name}`);
      // Indistinguishable from an index that never was.
      expect(expectError(reply, 404, 'not_found')).toEqual(expectError(unknown, 404, 'not_found'));
    }
    expect(expectReply(await stranger.client.listIndexes(), indexList).data).toEqual([]);
    expect((await find(owner.client, id, { query: 'river' })).results).toHaveLength(1);
    expect((await readUsage(stranger.client)).usage).toMatchObject({
      documents: 0,
      input_tokens: '0',
      searches: 0,
    });
  });

  test('[authentication-8] Key scopes or permission levels beyond tenant scoping: not shown.', async () => {
    // There are none: any key of the tenant may call every endpoint.
    const tenant = await stage.newTenant();
    const second = connect(stage.server.url, (await stage.newKey(tenant.id)).key);
    await eventually(async () => (await second.usage()).status === 200, { withinMs: 5000 });
    const { id } = await makeIndex(tenant.client);
    for (const attempt of Object.values(everyEndpoint(second, id))) {
      expect([200, 201]).toContain((await attempt()).status);
    }
  });

  test('[decision-40] onboarding is `maxsimd tenant create|list|suspend|resume|limits|delete` (delete erases)', async () => {
    const tenant = await stage.newTenant();
    await makeIndex(tenant.client);
    await stage.operate('tenant', 'delete', tenant.id, '--yes');
    const reply = await eventually(
      async () => {
        const answer = await tenant.client.usage();
        return answer.status === 200 ? undefined : answer;
      },
      { withinMs: 5000 },
    );
    expectError(reply, 401, 'authentication_failed');
    const { stdout } = await stage.run(['tenant', 'list', '--json']);
    expect(stdout).not.toContain(tenant.id);
  });
});
