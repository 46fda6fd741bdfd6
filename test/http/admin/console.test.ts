/** The console of operators: how its session travels, what it opens, and what it does not. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { OperatorSessions, operatorSessionMs } from '../../../src/http/admin/operator-sessions.ts';
import { startHttp } from '../../support/http/http-server.ts';
import { openAdminStage, type AdminStage } from './admin-stage.ts';

const page = new Map([
  [
    'index.html',
    {
      type: 'text/html; charset=utf-8',
      bytes: Buffer.from('<script src="./console.js"><body data-audience="tenants">'),
    },
  ],
]);
let stage: AdminStage;
beforeEach(async () => {
  stage = await openAdminStage({ page });
});
afterEach(async () => stage[Symbol.asyncDispose]());

interface Sent {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly payload?: object;
}

function ask(url: string, { method = 'GET', headers = {}, payload }: Sent = {}) {
  return stage.app.inject({ method, url, headers, ...(payload && { payload }) });
}

function signIn(key = stage.operatorKey) {
  const headers = { authorization: `Bearer ${key}` };
  return ask('/admin/console/session', { method: 'POST', headers });
}

async function signedIn(): Promise<string> {
  const answer = await signIn();
  expect(answer.statusCode).toBe(204);
  return String(answer.headers['set-cookie']).split(';')[0]!;
}

it('is served for operators, with relative addresses, and its cookie is for its own folder', async () => {
  const served = await ask('/admin/console');
  expect(served.body).toBe('<script src="console/console.js"><body data-audience="operators">');
  const inFolder = await ask('/admin/console/');
  expect(inFolder.body).toBe('<script src="./console.js"><body data-audience="operators">');
  expect(served.headers['content-security-policy']).toContain("default-src 'none'");
  expect((await signIn()).headers['set-cookie']).toMatch(
    /^maxsimd_operator=[\w-]{43}; Max-Age=3600; HttpOnly; SameSite=Strict$/,
  );
});

it('does what the key may, under the name of the operator', async () => {
  const cookie = await signedIn();
  expect((await ask('/admin/console/v1/session', { headers: { cookie } })).json()).toEqual({
    access: 'operator',
  });
  const made = await ask('/admin/console/v1/tenants', {
    method: 'POST',
    headers: { cookie },
    payload: { name: 'a' },
  });
  expect(made.statusCode).toBe(201);
  const audit = await ask('/admin/console/v1/audit', { headers: { cookie } });
  expect(audit.json()).toMatchObject({
    data: [{ act: 'tenant_created', actor: expect.stringMatching(/^operator:[0-9a-f]{16}$/) }],
  });
});

it('opens neither the admin API itself nor the public port', async () => {
  const cookie = await signedIn();
  expect((await ask('/admin/v1/tenants', { headers: { cookie } })).statusCode).toBe(401);
  await using http = await startHttp({ console: page });
  const authorization = `Bearer ${stage.operatorKey}`;
  const session = cookie.split('=')[1]!;
  for (const headers of [
    { cookie, authorization: '' },
    { cookie: `maxsimd_console=${session}`, authorization: '' },
  ])
    expect((await http.inject({ url: '/console/v1/usage', headers })).statusCode).toBe(401);
  const refused = await http.inject({ method: 'POST', url: '/console/session', headers: { authorization } });
  expect(refused.statusCode).toBe(401);
  expect((await http.inject({ url: '/admin/console', headers: { authorization } })).statusCode).toBe(404);
});

it('is opened by an operator’s key alone, and a wrong one is in the audit log', async () => {
  const { apiKey } = await stage.local.createTenant('a', {});
  expect((await signIn(apiKey)).statusCode).toBe(401);
  const cookie = await signedIn();
  const authorization = `Bearer ${stage.operatorKey}`;
  expect((await ask('/admin/console/v1/tenants', { headers: { authorization } })).statusCode).toBe(401);
  const audit = async () => (await ask('/admin/console/v1/audit', { headers: { cookie } })).body;
  await expect.poll(audit).toContain('"login_refused"');
});

it('takes nothing from another origin', async () => {
  const cookie = await signedIn();
  for (const site of ['cross-site', 'same-site', 'none']) {
    const headers = { cookie, 'sec-fetch-site': site };
    expect((await ask('/admin/console/v1/tenants', { headers })).statusCode, site).toBe(404);
  }
});

it('ends with the session', async () => {
  const cookie = await signedIn();
  const signedOut = await ask('/admin/console/session', { method: 'DELETE', headers: { cookie } });
  expect(signedOut.headers['set-cookie']).toMatch(/^maxsimd_operator=; .*Max-Age=0;/);
  expect((await ask('/admin/console/v1/tenants', { headers: { cookie } })).statusCode).toBe(401);
});

it('a session ends after an hour', () => {
  let nowMs = 1;
  const sessions = new OperatorSessions(() => nowMs);
  const session = sessions.open('operator:a');
  nowMs += operatorSessionMs - 1;
  expect(sessions.operatorOf(session)).toBe('operator:a');
  nowMs += 2;
  expect(sessions.operatorOf(session)).toBeUndefined();
  expect(sessions.operatorOf(undefined)).toBeUndefined();
});
