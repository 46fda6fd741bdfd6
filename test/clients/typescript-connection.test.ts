/** Connections of the TypeScript client: an address where nobody listens, and proxies that the environment names. */
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConnectionError, Maxsimd, MaxsimdError } from '../../clients/typescript/src/index.ts';
import { ApiDouble } from '../support/http/api-double.ts';
import { startForwardProxy, type ForwardProxy } from '../support/network/forward-proxy.ts';
import { openSilentAddress } from '../support/network/silent-address.ts';
import { makeCertificate } from '../support/network/tls.ts';
import { makeScratch } from '../support/running/launch.ts';

vi.setConfig({ testTimeout: 60_000 });

let double: ApiDouble;
let url: string;
beforeEach(async () => {
  double = new ApiDouble();
  url = await double.listen();
});
afterEach(() => double.close());

const connect = (options: object = {}): Maxsimd => new Maxsimd({ url, apiKey: 'k', ...options });

/** The error that a call fails with, and the time that it took. */
async function failure(call: () => Promise<unknown>): Promise<{ error: unknown; ms: number }> {
  const startedMs = performance.now();
  try {
    await call();
  } catch (error) {
    return { error, ms: performance.now() - startedMs };
  }
  throw new Error('it was fulfilled');
}

test('address and key come from the environment', async () => {
  vi.stubEnv('MAXSIMD_URL', undefined);
  expect(() => new Maxsimd()).toThrow('`url` is missing: pass it, or set MAXSIMD_URL');
  vi.stubEnv('MAXSIMD_URL', url);
  vi.stubEnv('MAXSIMD_API_KEY', undefined);
  expect(() => new Maxsimd()).toThrow('`apiKey` is missing: pass it, or set MAXSIMD_API_KEY');
  vi.stubEnv('MAXSIMD_API_KEY', 'of-the-environment');
  await new Maxsimd().listIndexes();
  await new Maxsimd({ apiKey: 'given' }).listIndexes();
  vi.unstubAllEnvs();
  expect(double.requests.map(({ authorization }) => authorization)).toEqual([
    'Bearer of-the-environment',
    'Bearer given',
  ]);
});

describe('an address that was never reached', () => {
  test('is given up within 5 s where nobody listens, after attempts that the caller hears of', async () => {
    await double.close();
    const waits: number[] = [];
    const client = connect({ onRetry: (_error: Error, delayMs: number) => waits.push(delayMs) });
    const { error, ms } = await failure(() => client.usage());
    await double.listen();
    expect(error).toMatchObject({ code: 'connection_failed', maybeReceived: false });
    expect(ms).toBeLessThan(9_000);
    expect(waits.length).toBeGreaterThan(0);
  });

  test('is given up within 5 s where no connection is taken', async () => {
    const silent = await openSilentAddress();
    const { error, ms } = await failure(() => connect({ url: silent.url }).usage());
    await silent.close();
    expect(error).toMatchObject({ code: 'connection_failed', maybeReceived: false });
    expect(ms).toBeLessThan(9_000);
  });

  test('is waited for as long as the caller says, and once it was reached longer than 5 s', async () => {
    const port = Number(new URL(url).port);
    const waitedMs = { patient: 0, reached: 0 };
    const bothWaited = Promise.withResolvers<void>();
    const counting = (name: keyof typeof waitedMs, options: object): Maxsimd =>
      connect({
        ...options,
        onRetry: (_error: Error, delayMs: number) => {
          waitedMs[name] += delayMs;
          if (Math.min(...Object.values(waitedMs)) > 5_000) bothWaited.resolve();
        },
      });
    const reached = counting('reached', {});
    const patient = counting('patient', { retryMsMax: 60_000 });
    await reached.usage();
    await double.close();
    const answers = [reached.usage(), patient.usage()];
    await bothWaited.promise;
    double = new ApiDouble();
    await double.listen(port);
    for (const answer of answers) expect(await answer).toMatchObject({ remaining: {} });
  });
});

describe('a proxy of the environment', () => {
  let proxy: ForwardProxy;
  beforeEach(async () => {
    proxy = await startForwardProxy(new URL(url));
    for (const name of ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'])
      vi.stubEnv(name, undefined);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await proxy.close();
  });
  const remote = (address: string): Maxsimd => connect({ url: address, retryMsMax: 0 });

  test.each(['HTTP_PROXY', 'http_proxy'])('%s is asked for an http:// address', async (name) => {
    vi.stubEnv(name, proxy.url);
    expect(await remote('http://service.test').usage()).toMatchObject({ remaining: {} });
    expect(proxy.requests).toEqual(['GET http://service.test/v1/usage']);
    expect(double.requests.map(({ authorization }) => authorization)).toEqual(['Bearer k']);
  });

  test('HTTPS_PROXY opens a tunnel to an https:// address, and sees no key', async () => {
    const scratch = await makeScratch();
    const { certificateFile, keyFile } = await makeCertificate(scratch.root);
    const seen: (string | undefined)[] = [];
    const server = createTlsServer(
      { cert: readFileSync(certificateFile), key: readFileSync(keyFile) },
      (request, response) => {
        seen.push(request.headers.authorization);
        response.end('{"deleted":true}');
      },
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const tunnel = await startForwardProxy(
      new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
    vi.stubEnv('HTTPS_PROXY', tunnel.url);
    await expect(remote('https://service.test').usage()).rejects.toMatchObject({
      code: 'connection_failed',
      maybeReceived: false,
    });
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    expect(await remote('https://service.test').deleteIndex('i')).toEqual({ deleted: true });
    expect(tunnel.requests).toEqual(['CONNECT service.test:443', 'CONNECT service.test:443']);
    expect(seen).toEqual(['Bearer k']);
    await tunnel.close();
    server.closeAllConnections();
    server.close();
    await scratch.remove();
  });

  test('is left out for the other scheme, for NO_PROXY, and for this machine', async () => {
    vi.stubEnv('HTTP_PROXY', proxy.url);
    for (const address of [
      'https://service.invalid',
      'http://one.service.invalid',
      'http://other.invalid:81',
    ]) {
      vi.stubEnv('NO_PROXY', '.service.invalid, other.invalid:81');
      await expect(remote(address).usage()).rejects.toBeInstanceOf(ConnectionError);
    }
    vi.stubEnv('NO_PROXY', undefined);
    for (const host of ['127.0.0.1', 'localhost']) {
      const { port } = new URL(url);
      expect(await remote(`http://${host}:${port}`).usage()).toMatchObject({ remaining: {} });
    }
    expect(proxy.requests).toEqual([]);
  });

  test('is left out for networks of NO_PROXY, and for IPv6 with or without brackets', async () => {
    vi.stubEnv('HTTP_PROXY', proxy.url);
    vi.stubEnv('NO_PROXY', '[::1], 0.0.0.0/8, ::/127');
    // These addresses mean this machine, and nobody listens: a connection is refused at once.
    for (const address of ['http://0.0.0.0:1', 'http://[::]:1'])
      await expect(remote(address).usage()).rejects.toBeInstanceOf(ConnectionError);
    expect(proxy.requests).toEqual([]);
    expect(await remote('http://service.test').usage()).toMatchObject({ remaining: {} });
  });

  test('that refuses the tunnel is no connection', async () => {
    const refusing = await startForwardProxy(undefined);
    vi.stubEnv('HTTPS_PROXY', refusing.url);
    const { error, ms } = await failure(() => connect({ url: 'https://service.test' }).usage());
    await refusing.close();
    expect(error).toMatchObject({ code: 'connection_failed', maybeReceived: false });
    expect(ms).toBeLessThan(9_000);
  });

  test.each(['no address', 'strange://host'])('%j is none', (given) => {
    vi.stubEnv('HTTP_PROXY', given);
    expect(() => remote('http://service.test')).toThrow(MaxsimdError);
  });
});
