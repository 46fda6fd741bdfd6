/** Commands that ask a service: an address where nobody listens, and proxies that the environment names. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiDouble } from '../support/http/api-double.ts';
import { startForwardProxy, type ForwardProxy } from '../support/network/forward-proxy.ts';
import { runJson } from '../support/commands/command-process.ts';

let api: ApiDouble;
let url: string;
beforeEach(async () => {
  api = new ApiDouble();
  url = await api.listen();
});
afterEach(() => api.close());

const key = { MAXSIMD_API_KEY: 'k', MAXSIMD_ADMIN_KEY: 'k' };

/** A process needs about a second to start and to end. */
const aroundMs = 30_000;

describe('an address that was never reached', () => {
  it('is given up within 5 s where nobody listens; --verbose tells of each attempt', async () => {
    await api.close();
    for (const args of [['usage'], ['tenant', 'list', '--admin-url', url]]) {
      const startedMs = performance.now();
      const options = { environment: { ...key, MAXSIMD_URL: url } };
      const { exitCode, document, stderr } = await runJson([...args, '--verbose'], options);
      expect(performance.now() - startedMs).toBeLessThan(5_000 + aroundMs);
      expect([exitCode, document.error.code]).toEqual([1, 'connection_failed']);
      const lines = stderr.trimEnd().split('\n').slice(0, -1);
      for (const line of lines)
        expect(line).toMatch(/^maxsimd: cannot reach http:\S+: .*ECONNREFUSED.*: again in \d+\.\d s$/);
      // The first waits are 0.1 to 0.6 s, and 0.1 to 1.1 s.
      expect(lines.length).toBeGreaterThanOrEqual(2);
    }
    await api.listen();
  });
});

describe('a proxy of the environment', () => {
  let proxy: ForwardProxy;
  beforeEach(async () => {
    proxy = await startForwardProxy(new URL(url));
  });
  afterEach(() => proxy.close());
  const noProxies = { NO_PROXY: '', no_proxy: '', http_proxy: '', https_proxy: '' };

  it('is asked for an address elsewhere, also that of an admin API', async () => {
    const environment = { ...key, ...noProxies, MAXSIMD_URL: 'http://service.test', http_proxy: proxy.url };
    const { exitCode, document } = await runJson(['usage'], { environment });
    expect([exitCode, document.remaining !== undefined]).toEqual([0, true]);
    await runJson(['tenant', 'list', '--admin-url', 'http://admin.test:81'], { environment });
    const admin = 'GET http://admin.test:81/admin/v1/tenants?limit=1000';
    expect(proxy.requests).toEqual(['GET http://service.test/v1/usage', admin]);
  });

  it('is not asked for an address in a network of NO_PROXY', async () => {
    const environment = {
      ...key,
      ...noProxies,
      MAXSIMD_URL: 'http://0.0.0.0:1',
      http_proxy: proxy.url,
      NO_PROXY: '[::1],0.0.0.0/8',
    };
    const { exitCode, document } = await runJson(['usage'], { environment });
    expect([exitCode, document.error.code]).toEqual([1, 'connection_failed']);
    expect(proxy.requests).toEqual([]);
  });

  it('that is no address is a usage error', async () => {
    const environment = {
      ...key,
      ...noProxies,
      MAXSIMD_URL: 'http://service.test',
      http_proxy: 'no address',
    };
    const { exitCode, document } = await runJson(['usage'], { environment });
    expect([exitCode, document.error.code]).toEqual([2, 'usage_error']);
  });
});
