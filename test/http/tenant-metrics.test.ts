/** Metrics of tenants: the labels stay few, and no counter goes back. */
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { BusiestTenants, registerTenantMetrics } from '../../src/http/tenant-metrics.ts';
import { createMetrics } from '../../src/observation/metrics.ts';
import { startHttp } from '../support/http/http-server.ts';

const minutesMs = 60_000;

function stage() {
  let nowMs = 0;
  const metrics = createMetrics();
  const owners: { readonly owner: string; readonly takenBytes: number }[] = [];
  const observe = registerTenantMetrics(metrics, () => owners, new BusiestTenants(() => nowMs));
  return {
    pass: (minutes: number): void => void (nowMs += minutes * minutesMs),
    request: (tenantId: string, times = 1): void => {
      for (let time = 0; time < times; time += 1)
        observe({ tenantId, status: 200, seconds: 0.02, work: { inputTokens: 7, documents: 2 } });
    },
    observe,
    owners,
    lines: async (name: string): Promise<ReadonlyMap<string, number>> => {
      const text = await metrics.render();
      const found = text.matchAll(new RegExp(`^maxsimd_${name}\\{tenant="([^"]+)".*\\} (\\S+)$`, 'gm'));
      return new Map(Array.from(found, ([, tenant = '', value]) => [tenant, Number(value)]));
    },
    render: () => metrics.render(),
  };
}

describe('metrics of tenants', () => {
  it('count requests by class of status, tokens, documents and time', async () => {
    const { observe, render } = stage();
    observe({ tenantId: 'a', status: 200, seconds: 0.02, work: { inputTokens: 7, documents: 2 } });
    observe({ tenantId: 'a', status: 201, seconds: 9, work: { inputTokens: 5, documents: 0 } });
    observe({ tenantId: 'a', status: 429, seconds: 0.001 });
    const text = await render();
    for (const line of [
      'maxsimd_tenant_requests_total{tenant="a",status="2xx"} 2',
      'maxsimd_tenant_requests_total{tenant="a",status="4xx"} 1',
      'maxsimd_tenant_input_tokens_total{tenant="a"} 12',
      'maxsimd_tenant_documents_total{tenant="a"} 2',
      'maxsimd_tenant_request_duration_seconds_bucket{tenant="a",le="0.01"} 0',
      'maxsimd_tenant_request_duration_seconds_bucket{tenant="a",le="0.05"} 1',
      'maxsimd_tenant_request_duration_seconds_bucket{tenant="a",le="+Inf"} 2',
      'maxsimd_tenant_request_duration_seconds_sum{tenant="a"} 9.02',
      'maxsimd_tenant_request_duration_seconds_count{tenant="a"} 2',
    ]) {
      expect(text).toContain(line);
    }
    expect(text).not.toContain('tenant="other"');
  });

  it('say how much memory the labelled tenants have, and all others together', async () => {
    const { observe, owners, lines } = stage();
    observe({ tenantId: 'a', status: 200, seconds: 0.02 });
    owners.push({ owner: 'a', takenBytes: 5 }, { owner: 'b', takenBytes: 3 }, { owner: '', takenBytes: 1 });
    expect(await lines('tenant_memory_bytes')).toEqual(
      new Map([
        ['a', 5],
        ['other', 4],
      ]),
    );
  });

  it('have 100 labels, and one for the rest', async () => {
    const { request, lines } = stage();
    for (let tenant = 0; tenant < 150; tenant += 1) request(`t${tenant}`);
    for (const name of ['tenant_requests_total', 'tenant_input_tokens_total', 'tenant_documents_total']) {
      const found = await lines(name);
      expect(found.size).toBe(101);
      expect(found.get('other')).toBe(50 * (found.get('t0') ?? 0));
    }
  });

  it('give the labels to the busiest tenants of the last minutes, and go on where a tenant returns', async () => {
    const { request, pass, lines } = stage();
    for (let tenant = 0; tenant < 100; tenant += 1) request(`t${tenant}`, tenant === 0 ? 1 : 3);
    request('new', 2);
    const first = await lines('tenant_requests_total');
    expect([first.get('new'), first.get('other'), first.get('t0')]).toEqual([undefined, 2, 1]);
    pass(5);
    request('new');
    const second = await lines('tenant_requests_total');
    expect(second.size).toBe(101);
    expect(second.has('t0')).toBe(false);
    expect([second.get('new'), second.get('other'), second.get('t1')]).toEqual([1, 2, 3]);
    request('t0', 5);
    for (let tenant = 1; tenant < 100; tenant += 1) request(`t${tenant}`, 4);
    pass(5);
    request('t0');
    const third = await lines('tenant_requests_total');
    expect(third.has('new')).toBe(false);
    expect([third.get('t0'), third.get('other'), third.get('t1')]).toEqual([2, 7, 7]);
  });

  it('never go back, and lose no request, whichever tenants come', async () => {
    const seed = Date.now() % 1_000_000;
    let state = seed;
    const random = (below: number): number => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((state / 2 ** 31) * below);
    };
    const { request, pass, lines } = stage();
    const highest = new Map<string, number>();
    let sent = 0;
    for (let round = 0; round < 30; round += 1) {
      for (let some = 0; some < 500; some += 1) request(`t${(round * 20 + random(160)) % 300}`);
      sent += 500;
      pass(random(6));
      for (const [tenant, value] of await lines('tenant_requests_total')) {
        expect(value, `${tenant}, seed ${seed}`).toBeGreaterThanOrEqual(highest.get(tenant) ?? 0);
        highest.set(tenant, value);
      }
    }
    const total = [...highest.values()].reduce((sum, value) => sum + value, 0);
    expect(total, `seed ${seed}`).toBe(sent);
  });

  it('come from the requests of the API, and from those that a limit refused', async () => {
    await using http = await startHttp();
    await http.inject({ url: '/v1/usage' });
    await http.app.inject({ url: '/v1/usage' });
    http.service.admitFailure = new ServiceError('rate_limit_exceeded', 'too many', {
      retryAfterSeconds: 1,
      tenantId: 'tenant-1',
    });
    await http.inject({ url: '/v1/usage' });
    const text = await http.metrics.render();
    expect(text.match(/^maxsimd_tenant_requests_total\{.*/gm)).toEqual([
      'maxsimd_tenant_requests_total{tenant="tenant-1",status="2xx"} 1',
      'maxsimd_tenant_requests_total{tenant="tenant-1",status="4xx"} 1',
    ]);
    expect(http.logLines.at(-1)).toMatchObject({ status: 429, tenant_id: 'tenant-1' });
  });
});
