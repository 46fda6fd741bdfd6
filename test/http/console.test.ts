/** How a session travels, over HTTPS and without it, and what of the console a browser may keep. */
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import type { ConsolePage } from '../../src/http/console/page.ts';
import { startHttp } from '../support/http/http-server.ts';
import { listen } from '../support/http/sockets.ts';
import { authorization } from '../support/http/watched-service.ts';

const page: ConsolePage = new Map([
  ['index.html', { type: 'text/html; charset=utf-8', bytes: Buffer.from('<!doctype html>') }],
]);

type Ask = (
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<LightMyRequestResponse>;

/** `proto`: what a proxy in front says of the browser's connection. */
async function openConsole({ trustProxy = false, proto }: { trustProxy?: boolean; proto?: string }) {
  const http = await startHttp({ console: page, trustProxy });
  onTestFinished(() => http[Symbol.asyncDispose]());
  const ended: (string | undefined)[] = [];
  http.service.endSession = async (session) => void ended.push(session);
  const ask: Ask = (method, path, headers = {}) => {
    const forwarded = proto === undefined ? {} : { 'x-forwarded-proto': proto };
    const options: InjectOptions = { method, url: `/console${path}`, headers: { ...forwarded, ...headers } };
    return http.inject(options);
  };
  return { ask, ended };
}

function sessionIn(cookie: unknown): string {
  return /=([^;]+);/.exec(String(cookie))?.[1] ?? '';
}

const plain = 'maxsimd_console';
const secure = `__Host-${plain}`;
const rest = 'HttpOnly; SameSite=Strict';

test.each([
  ['plain HTTP', {}, plain, `; Max-Age=43200; ${rest}`],
  ['a proxy that is not trusted', { proto: 'https' }, plain, `; Max-Age=43200; ${rest}`],
  ['a trusted proxy over HTTP', { trustProxy: true, proto: 'http' }, plain, `; Max-Age=43200; ${rest}`],
  [
    'a trusted proxy over HTTPS',
    { trustProxy: true, proto: 'https' },
    secure,
    `; Path=/; Secure; Max-Age=43200; ${rest}`,
  ],
])('by %s, the cookie is of that kind alone', async (_name, options, name, attributes) => {
  const { ask, ended } = await openConsole(options);
  const signedIn = await ask('POST', '/session');
  expect(signedIn.statusCode).toBe(204);
  const session = sessionIn(signedIn.headers['set-cookie']);
  expect(signedIn.headers['set-cookie']).toBe(`${name}=${session}${attributes}`);
  const other = name === plain ? secure : plain;
  const usage = (cookie: string) => ask('GET', '/v1/usage', { cookie, authorization: '' });
  expect((await usage(`a=b; ${name}=${session}; c=d`)).statusCode).toBe(200);
  expect((await usage(`${other}=${session}`)).statusCode).toBe(401);
  const signedOut = await ask('DELETE', '/session', { cookie: `${other}=x; ${name}=${session}` });
  expect(signedOut.statusCode).toBe(204);
  expect(signedOut.headers['set-cookie']).toBe(`${name}=${attributes.replace('Max-Age=43200', 'Max-Age=0')}`);
  expect(ended).toEqual([session]);
});

test('with a certificate of its own, the server speaks to browsers as over HTTPS', async () => {
  const fixture = (name: string) => readFileSync(new URL(`protocol/fixtures/${name}`, import.meta.url));
  const cert = fixture('test-only-cert.pem');
  await using http = await startHttp({ console: page, tls: { cert, key: fixture('test-only-key.pem') } });
  const port = await listen(http);
  const headers = await new Promise<IncomingHttpHeaders>((resolve, reject) => {
    const address = { host: '127.0.0.1', port, path: '/console/session', method: 'POST', ca: cert };
    request({ ...address, headers: { authorization } }, (response) => {
      response.resume();
      resolve(response.headers);
    })
      .on('error', reject)
      .end();
  });
  const [cookie] = headers['set-cookie'] ?? [];
  expect(cookie).toBe(`${secure}=${sessionIn(cookie)}; Path=/; Secure; Max-Age=43200; ${rest}`);
  expect(headers['strict-transport-security']).toBe('max-age=15552000');
});

test.each([
  ['plain HTTP', {}, undefined],
  ['HTTPS', { trustProxy: true, proto: 'https' }, 'max-age=15552000'],
])(
  'by %s, nothing of the console is stored, and only HTTPS asks for more of it',
  async (_name, options, strict) => {
    const { ask } = await openConsole(options);
    const signedIn = await ask('POST', '/session');
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0]!;
    const answers = [
      signedIn,
      await ask('GET', ''),
      await ask('GET', '/v1/usage', { cookie }),
      await ask('GET', '/v1/usage'),
      await ask('GET', '/v1/nothing', { cookie }),
      await ask('GET', '/v1/usage', { cookie, 'sec-fetch-site': 'cross-site' }),
      await ask('POST', '/session', { authorization: 'Bearer wrong' }),
      await ask('DELETE', '/session', { cookie }),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([204, 200, 200, 401, 404, 404, 401, 204]);
    for (const { headers } of answers) {
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['strict-transport-security']).toBe(strict);
    }
  },
);
