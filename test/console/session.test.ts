/** Sessions of the console and what they may do, at the real service. */
import { describe, expect, test } from 'vitest';

import { createKey } from '../support/commands/command-line.ts';
import { useSharedStage } from '../support/running/stage.ts';
import { makeIndex, put } from '../support/running/requests.ts';

const stage = useSharedStage();

/** The fields of an answer that these tests read. */
interface Answered {
  readonly results?: unknown;
  readonly usage?: unknown;
  readonly error?: unknown;
  readonly data?: unknown;
}

async function signIn(key: string): Promise<{ readonly cookie: string }> {
  const answer = await fetch(`${stage.server.url}/console/session`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.status).toBe(204);
  const header = answer.headers.get('set-cookie') ?? '';
  return { cookie: header.split(';')[0] ?? '' };
}

async function ask(
  path: string,
  {
    cookie,
    body,
    method,
    headers = {},
  }: {
    readonly cookie?: string;
    readonly body?: unknown;
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
  },
): Promise<{ readonly status: number; readonly body: Answered; readonly headers: Headers }> {
  const answer = await fetch(`${stage.server.url}/console/v1/${path}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(cookie === undefined ? {} : { cookie }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Answered, headers: answer.headers };
}

describe('a session', () => {
  test('reads what its tenant has, with the time of each stage', async () => {
    const { id } = await makeIndex(stage.client);
    await put(stage.client, id, [{ doc_id: 'a', text: 'the tide comes in' }]);
    const { cookie } = await signIn(stage.tenant.key);
    const found = await ask(`indexes/${id}/search`, { cookie, body: { query: 'tide' } });
    expect(found.body.results).toMatchObject([{ doc_id: 'a' }]);
    expect(found.headers.get('server-timing')).toMatch(/^admission;dur=[\d.]+, .*engine;dur=/);
    const described = await ask(`indexes/${id}/description`, { cookie });
    expect(described.body).toMatchObject({ documents: 1, segments: [{ chunks: 1 }] });
    // Nothing is looked at under the key in a header here, nor by the cookie there.
    expect((await ask('usage', { headers: { authorization: `Bearer ${stage.tenant.key}` } })).status).toBe(
      401,
    );
    const outside = await fetch(`${stage.server.url}/v1/usage`, { headers: { cookie } });
    expect(outside.status).toBe(401);
  });

  test('may do what its key may', async () => {
    const tenant = await stage.newTenant();
    const { cookie } = await signIn(tenant.key);
    expect((await ask('session', { cookie })).body).toEqual({ access: 'full' });
    const { id } = await makeIndex(tenant.client);
    const upsert = { documents: [{ doc_id: 'a', text: 'the tide comes in' }] };
    expect((await ask(`indexes/${id}/documents`, { cookie, body: upsert })).status).toBe(200);
    expect((await ask('contents', { cookie })).body).toMatchObject({
      data: [{ id, documents: 1, chunks: 1, bytes: expect.any(Number) }],
    });
    expect((await ask(`indexes/${id}`, { cookie, method: 'DELETE' })).status).toBe(200);
  });

  test('sees which models a new index may have', async () => {
    const { cookie } = await signIn(stage.tenant.key);
    const { data } = (await ask('models', { cookie })).body as {
      data?: readonly { name: string; is_default: boolean }[];
    };
    const { model } = await makeIndex(stage.client);
    expect(data?.filter((one) => one.is_default)).toEqual([{ name: model, is_default: true }]);
  });

  test('of a key that may only read changes nothing', async () => {
    const tenant = await stage.newTenant();
    const { id } = await makeIndex(tenant.client);
    const { key } = await createKey(stage.server, tenant.id, '--read-only');
    const { cookie } = await signIn(key);
    expect((await ask('session', { cookie })).body).toEqual({ access: 'read' });
    expect((await ask('indexes', { cookie })).status).toBe(200);
    expect((await ask('indexes', { cookie, body: { name: 'x' } })).status).toBe(403);
    expect((await ask(`indexes/${id}`, { cookie, method: 'DELETE' })).status).toBe(403);
    const upsert = { documents: [{ doc_id: 'a', text: 'b' }] };
    expect((await ask(`indexes/${id}/documents`, { cookie, body: upsert })).status).toBe(403);
  });

  test('of another tenant finds nothing', async () => {
    const { id } = await makeIndex(stage.client);
    const other = await stage.newTenant();
    const { cookie } = await signIn(other.key);
    const none = { code: 'not_found', message: 'no such index' };
    expect((await ask(`indexes/${id}/description`, { cookie })).body.error).toEqual(none);
    expect((await ask('tokens', { cookie, body: { index_id: id, query: 'a' } })).body.error).toEqual(none);
    expect((await ask('indexes', { cookie })).body).toEqual({ data: [] });
  });

  test('counts a look at tokens as a request without tokens of the month, and no further than the rate', async () => {
    const tenant = await stage.newTenant({ requestsPerMinute: 4 });
    const { cookie } = await signIn(tenant.key);
    const look = () =>
      ask('tokens', {
        cookie,
        body: { query: 'tide', document: { text: 'the tide comes in', chunk_index: 0 } },
      });
    expect([(await look()).status, (await look()).status]).toEqual([200, 200]);
    const { body } = await ask('usage', { cookie });
    expect(body.usage).toMatchObject({ requests: 3, input_tokens: '0' });
    expect((await look()).status).toBe(429);
  });

  test('ends with its key and its tenant', async () => {
    const revoked = await stage.newTenant();
    const suspended = await stage.newTenant();
    const { cookie: first } = await signIn(revoked.key);
    const { cookie: second } = await signIn(suspended.key);
    await stage.operate('key', 'revoke', revoked.key.slice(9, 21));
    await stage.operate('tenant', 'suspend', suspended.id);
    await expect.poll(async () => (await ask('usage', { cookie: first })).status).toBe(401);
    expect((await ask('session', { cookie: first })).body.error).toMatchObject({
      message: 'the API key of this session was revoked; sign in with another key',
    });
    expect((await ask('session', {})).body.error).toMatchObject({
      message: 'the session has ended; sign in again',
    });
    await expect.poll(async () => (await ask('usage', { cookie: second })).status).toBe(403);
  });

  test('is of no use to other sites', async () => {
    const { cookie } = await signIn(stage.tenant.key);
    for (const site of ['cross-site', 'same-site', 'none']) {
      const answer = await ask('usage', { cookie, headers: { 'sec-fetch-site': site } });
      expect(answer.status, site).toBe(404);
    }
    // A form of another port of this host is a navigation of the same site, and browsers send the cookie with it.
    const form = { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate' };
    expect((await ask('indexes', { cookie, body: { name: 'x' }, headers: form })).status).toBe(404);
    expect((await ask('usage', { cookie, headers: { 'sec-fetch-site': 'same-origin' } })).status).toBe(200);
  });
});

test('script and style stay small', async () => {
  const lengthOf = async (file: string): Promise<number> =>
    (await (await fetch(`${stage.server.url}/console/${file}`)).text()).length;
  const [script, style] = [await lengthOf('console.js'), await lengthOf('console.css')];
  expect(Math.min(script, style)).toBeGreaterThan(5_000);
  expect(script + style).toBeLessThan(150_000);
});

test('the page takes nothing from elsewhere', async () => {
  const page = await fetch(`${stage.server.url}/console`);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await page.text()).not.toMatch(/https?:/);
  expect((await fetch(`${stage.server.url}/console/`)).status).toBe(200);
});
