/** The admin API on the wire: who gets in, what is refused, pages, and that it describes itself. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OperatorKeys } from '../../../src/http/admin/operator-keys.ts';
import {
  AuditList,
  CreatedKey,
  CreatedTenant,
  Key,
  KeyList,
  Tenant,
  TenantInUse,
  TenantList,
} from '../../../src/http/admin/schemas.ts';
import { UsageDays } from '../../../src/http/schemas/usage.ts';
import { openAdminStage, stageMemoryBytes, type AdminStage } from './admin-stage.ts';

let stage: AdminStage;
beforeEach(async () => {
  stage = await openAdminStage();
});
afterEach(async () => stage[Symbol.asyncDispose]());

async function ask(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  payload?: object,
  key = stage.operatorKey,
) {
  const answer = await stage.app.inject({
    method,
    url: `/admin/v1${path}`,
    headers: { authorization: `Bearer ${key}` },
    ...(payload && { payload }),
  });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json<Record<string, never>>() };
}

const codeOf = ({ body }: { readonly body: object }) => (body as { error?: { code: string } }).error?.code;
const issueOf = ({ body }: { readonly body: object }) =>
  (body as { error: { issues: { path: string; code: string }[] } }).error.issues[0];

describe('who gets in', () => {
  const routes = [
    ['GET', '/tenants'],
    ['POST', '/tenants'],
    ['GET', '/tenants/x'],
    ['PATCH', '/tenants/x'],
    ['DELETE', '/tenants/x'],
    ['GET', '/tenants/x/usage'],
    ['GET', '/tenants/x/keys'],
    ['POST', '/tenants/x/keys'],
    ['DELETE', '/keys/x'],
    ['GET', '/audit'],
    ['GET', '/nowhere'],
  ] as const;

  it.each(routes)('%s %s is for operators alone', async (method, path) => {
    const { apiKey } = await stage.local.createTenant('tenant', {});
    for (const key of ['', 'x', apiKey, `${stage.operatorKey}0`, stage.operatorKey.slice(1)]) {
      const refused = await ask(method, path, undefined, key);
      expect(refused.status, key).toBe(401);
      expect(codeOf(refused)).toBe('authentication_failed');
      expect(refused.headers['www-authenticate']).toBe('Bearer');
    }
    expect((await ask(method, path)).status).not.toBe(401);
  });

  it('has no other address', async () => {
    expect((await ask('GET', '/nowhere')).status).toBe(404);
    expect((await stage.app.inject({ url: '/v1/indexes' })).statusCode).toBe(404);
  });

  it('takes keys of 32 characters or more from a file with one in each line', () => {
    const key = 'k'.repeat(32);
    for (const text of ['', '\n \n', 'k'.repeat(31), `${key}\nshort`, `${key} ${key}`, `${key}\u00e9`]) {
      expect(() => new OperatorKeys(text), text).toThrow(/key/);
    }
    const keys = new OperatorKeys(`\r\n${key}\r\n\n${'l'.repeat(40)}`);
    const names = [key, 'l'.repeat(40)].map((good) => keys.identify(`Bearer ${good}`));
    // The name is the first 16 digits that `printf %s KEY | sha256sum` prints.
    expect(names).toEqual(['operator:5e318f8cf9cbe249', 'operator:271d85a6ab391d57']);
    for (const bad of [undefined, '', 'Bearer ', `Basic ${key}`, `Bearer ${key}${key}`]) {
      expect(keys.identify(bad), bad).toBeUndefined();
    }
    expect(() => new OperatorKeys(`${key}\nsecretive`)).not.toThrow(/secretive/);
  });
});

describe('the audit log', () => {
  const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex').slice(0, 16);

  it('has the name of a tenant until it is erased', async () => {
    const { tenant_id: id } = (await ask('POST', '/tenants', { name: 'acme' })).body as Record<
      string,
      string
    >;
    const names = async () =>
      AuditList.parse((await ask('GET', `/audit?tenant_id=${id}`)).body).data.map(
        (entry) => entry.tenant_name,
      );
    expect(await names()).toEqual(['acme']);
    await ask('DELETE', `/tenants/${id}`);
    expect(await names()).toEqual([null, null]);
  });

  it('names each operator by the digest of the key, and never the key', async () => {
    const made = await ask('POST', '/tenants', { name: 'acme' });
    const { tenant_id: id, key_id: keyId } = made.body as Record<string, string>;
    await ask('PATCH', `/tenants/${id}`, { suspended: true });
    await ask('PATCH', `/tenants/${id}`, { limits: { documents: 1 } });
    await ask('POST', `/tenants/${id}/keys`, {});
    await ask('DELETE', `/keys/${keyId}`);
    await ask('DELETE', `/tenants/${id}`);
    const entries = await stage.catalog.listAudit({ limit: 100, tenantId: id });
    expect(entries).toHaveLength(6);
    for (const { actor } of entries) expect(actor).toBe(`operator:${digestOf(stage.operatorKey)}`);
    expect(JSON.stringify(entries)).not.toContain(stage.operatorKey);
  });

  it('has refused logins: the first at once, those of the minute after it as one entry', async () => {
    await using fresh = await openAdminStage();
    const former = 'f'.repeat(64);
    const refused = (key: string) =>
      fresh.app.inject({ url: '/admin/v1/tenants', headers: { authorization: `Bearer ${key}` } });
    const entries = async () =>
      (await fresh.catalog.listAudit({ limit: 10 })).map(({ actor, act, tenantId, detail }) => ({
        actor,
        act,
        tenantId,
        detail,
      }));
    const first = {
      actor: 'server',
      act: 'login_refused',
      tenantId: undefined,
      detail: { attempts: 1, address: '127.0.0.1' },
    };
    // A password by mistake leaves no digest that gives it away.
    await refused('hunter2');
    await expect.poll(entries).toEqual([first]);
    for (let attempt = 0; attempt < 50; attempt += 1) await refused(former);
    expect(await entries()).toEqual([first]);
    await fresh.app.close();
    expect(await entries()).toEqual([
      { ...first, detail: { attempts: 50, address: '127.0.0.1', key_digest: digestOf(former) } },
      first,
    ]);
  });
});

describe('what is refused', () => {
  it.each([
    ['POST', '/tenants', {}, 'name', 'invalid_type'],
    ['POST', '/tenants', { name: '' }, 'name', 'too_small'],
    ['POST', '/tenants', { name: 'x', more: 1 }, 'more', 'unrecognized_keys'],
    ['POST', '/tenants', { name: 'x', limits: { documents: -1 } }, 'limits.documents', 'too_small'],
    [
      'POST',
      '/tenants',
      { name: 'x', limits: { requests_per_minute: 0 } },
      'limits.requests_per_minute',
      'too_small',
    ],
    [
      'POST',
      '/tenants',
      { name: 'x', limits: { input_tokens: '9223372036854775808' } },
      'limits.input_tokens',
      'invalid',
    ],
    ['PATCH', '/tenants/x', {}, '', 'invalid'],
    ['PATCH', '/tenants/x', { suspended: true, limits: {} }, '', 'invalid'],
    ['GET', '/tenants/x/usage?from=2026-02-30', undefined, 'from', 'invalid_format'],
    ['GET', '/tenants/x/usage?from=2026-02-02&to=2026-02-01', undefined, 'to', 'too_small'],
    ['GET', '/tenants/x/usage?from=2024-01-01&to=2026-02-01', undefined, 'from', 'too_big'],
    ['GET', '/audit?cursor=x', undefined, 'cursor', 'invalid_cursor'],
    ['GET', '/audit?tenant_id=%00', undefined, 'tenant_id', 'invalid'],
    ['GET', '/tenants/a%00', undefined, 'tenant_id', 'invalid'],
    ['PATCH', '/tenants/%00', { suspended: true }, 'tenant_id', 'invalid'],
    ['DELETE', '/tenants/%00', undefined, 'tenant_id', 'invalid'],
    ['GET', '/tenants/%00/usage', undefined, 'tenant_id', 'invalid'],
    ['GET', '/tenants/%00/keys', undefined, 'tenant_id', 'invalid'],
    ['POST', '/tenants/%00/keys', {}, 'tenant_id', 'invalid'],
    ['POST', '/tenants/x/keys', { requests_per_minute: 0 }, 'requests_per_minute', 'too_small'],
    ['POST', '/tenants/x/keys', { name: '' }, 'name', 'too_small'],
    ['POST', '/tenants/x/keys', { name: '👩'.repeat(65) }, 'name', 'too_big'],
    ['POST', '/tenants/x/keys', { name: 'a\n' }, 'name', 'control_character'],
    ['POST', '/tenants/x/keys', { name: 'a\ud83d' }, 'name', 'invalid_unicode'],
    ['POST', '/tenants/x/keys', { name: 5 }, 'name', 'invalid_type'],
    ['DELETE', '/keys/%00', undefined, 'key_id', 'invalid'],
    ['POST', '/tenants', { name: 'a\0' }, 'name', 'control_character'],
    ['POST', '/tenants', { name: 'a\ud83d' }, 'name', 'invalid_unicode'],
    ['GET', '/tenants?limit=0', undefined, 'limit', 'too_small'],
  ] as const)('%s %s %j', async (method, path, body, where, code) => {
    const refused = await ask(method, path, body);
    expect(refused.status).toBe(422);
    expect(issueOf(refused)).toMatchObject({ path: where, code });
  });

  it('a name that another tenant has', async () => {
    await stage.local.createTenant('Acme', {});
    const refused = await ask('POST', '/tenants', { name: 'Acme' });
    expect(refused.status).toBe(422);
    expect(issueOf(refused)).toMatchObject({ path: 'name', code: 'duplicate' });
  });

  it('bodies beyond 64 KiB, and an eleventh live key', async () => {
    expect((await ask('POST', '/tenants', { name: 'x'.repeat(70_000) })).status).toBe(413);
    const { tenant } = await stage.local.createTenant('tenant', {});
    for (let keys = 1; keys < 10; keys += 1)
      expect((await ask('POST', `/tenants/${tenant.id}/keys`, {})).status).toBe(201);
    const eleventh = await ask('POST', `/tenants/${tenant.id}/keys`, {});
    expect(eleventh.status).toBe(422);
    expect(issueOf(eleventh)).toMatchObject({
      code: 'too_many_keys',
      message: 'the tenant already has 10 live keys, which is the most: revoke one first',
    });
  });

  it.each(['GET', 'PATCH', 'DELETE'] as const)('%s of a tenant that is not there', async (method) => {
    const missing = await ask(
      method,
      '/tenants/nobody',
      method === 'PATCH' ? { suspended: true } : undefined,
    );
    expect(missing.status).toBe(404);
    expect(codeOf(missing)).toBe('not_found');
  });
});

describe('what is answered', () => {
  it('is what the document says', async () => {
    const created = await ask('POST', '/tenants', { name: 'Acme', limits: { input_tokens: '5' } });
    expect(created.status).toBe(201);
    const { tenant_id: id, key_id: keyId } = CreatedTenant.parse(created.body);
    expect(created.headers['location']).toBe(`tenants/${id}`);
    const own = TenantInUse.parse((await ask('GET', `/tenants/${id}`)).body);
    expect([own.limits.input_tokens, own.memory_bytes]).toEqual(['5', stageMemoryBytes]);
    expect(own.unlimited).toEqual([]);
    const allowances = { input_tokens: '9223372036854775807', documents: 9_007_199_254_740_991 };
    const free = Tenant.parse((await ask('PATCH', `/tenants/${id}`, { limits: allowances })).body);
    expect(free).toMatchObject({ limits: allowances, unlimited: ['input_tokens', 'documents'] });
    // A UUID is read in either case.
    expect(TenantInUse.parse((await ask('GET', `/tenants/${id.toUpperCase()}`)).body).tenant_id).toBe(id);
    expect(Tenant.parse((await ask('PATCH', `/tenants/${id}`, { suspended: true })).body).suspended).toBe(
      true,
    );
    expect(TenantList.parse((await ask('GET', '/tenants')).body).data).toHaveLength(1);
    const limits = { requests_per_minute: 5, max_concurrent_requests: 1 };
    const choice = { name: 'nightly import', access: 'read', ...limits };
    const made = await ask('POST', `/tenants/${id}/keys`, choice);
    expect(CreatedKey.parse(made.body)).toMatchObject({ ...choice, last_used_at: null });
    const plain = CreatedKey.parse((await ask('POST', `/tenants/${id}/keys`, { name: null })).body);
    expect(plain).toMatchObject({ name: null, access: 'full', requests_per_minute: null });
    await stage.catalog.noteKeyUse(plain.key_id, Date.UTC(2026, 10, 30));
    const listed = KeyList.parse((await ask('GET', `/tenants/${id}/keys`)).body).data;
    expect(listed).toHaveLength(3);
    expect(listed.find((key) => key.key_id === plain.key_id)?.last_used_at).toBe('2026-11-30T00:00:00.000Z');
    const first = Key.parse((await ask('DELETE', `/keys/${keyId}`)).body);
    expect(first.revoked_at).not.toBeNull();
    expect([first.requests_per_minute, first.max_concurrent_requests]).toEqual([null, null]);
    UsageDays.parse((await ask('GET', `/tenants/${id}/usage`)).body);
    expect((await ask('DELETE', `/tenants/${id}`)).body).toEqual({ deleted: true, indexes: 0 });
    const { data: acts } = AuditList.parse((await ask('GET', '/audit')).body);
    expect(acts).toHaveLength(7);
    expect(JSON.stringify(acts)).not.toContain(choice.name);
  });

  it('shows a key once, and logs none', async () => {
    const { api_key: secret, tenant_id: id } = CreatedTenant.parse(
      (await ask('POST', '/tenants', { name: 'Acme' })).body,
    );
    for (const path of [`/tenants/${id}/keys`, '/audit', '/tenants']) {
      expect(JSON.stringify((await ask('GET', path)).body)).not.toContain(secret);
    }
    for (const hidden of [secret, stage.operatorKey]) expect(stage.logText()).not.toContain(hidden);
    expect(stage.logText()).toContain('/admin/v1/tenants');
  });

  it('is described in a document of its own, with every route', async () => {
    const { paths } = (await stage.app.inject({ url: '/openapi.json' })).json<{
      paths: Record<string, object>;
    }>();
    const operations = Object.entries(paths).flatMap(([path, item]) =>
      path.startsWith('/admin') ? Object.keys(item).map((method) => `${method} ${path}`) : [],
    );
    expect(operations).toHaveLength(10);
    expect((await stage.app.inject({ url: '/docs' })).statusCode).toBe(200);
  });
});

it('refuses query parameters that a route does not know, and names twice in a body', async () => {
  expect(issueOf(await ask('GET', '/tenants?limt=1'))).toMatchObject({
    path: 'limt',
    message: 'unknown parameter (did you mean limit?)',
  });
  expect(issueOf(await ask('POST', '/tenants?name=x', { name: 'x' }))).toMatchObject({ path: 'name' });
  const answer = await stage.app.inject({
    method: 'POST',
    url: '/admin/v1/tenants',
    headers: { authorization: `Bearer ${stage.operatorKey}`, 'content-type': 'application/json' },
    payload: '{"name":"x","limits":{"documents":1,"documents":2}}',
  });
  expect(issueOf({ body: answer.json() })).toMatchObject({ path: 'limits.documents', code: 'duplicate' });
});
