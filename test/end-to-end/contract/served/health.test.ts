/** "Service health" and what surrounds the API: the metrics port. */
import { describe, expect, test } from 'vitest';

import { call } from '../../../support/running/client.ts';
import { useStage } from '../../../support/running/stage.ts';

const stage = useStage({ metrics: true, sharedEncoder: true });

describe('Service health', () => {
  test('[endpoints-3] GET | `/healthz` | none', async () => {
    for (const key of [undefined, 'qkv_live_wrong', stage.tenant.key]) {
      const reply = await call(`${stage.server.url}/healthz`, key === undefined ? {} : { key });
      expect(reply.status).toBe(200);
      expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/);
    }
  });

  test('[endpoints-4] GET | `/readyz` | none', async () => {
    for (const key of [undefined, 'qkv_live_wrong', stage.tenant.key]) {
      const reply = await call(`${stage.server.url}/readyz`, key === undefined ? {} : { key });
      expect(reply.status).toBe(200);
      expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/);
    }
  });

  test('[authentication-4] `GET /healthz` and `GET /readyz` need no authentication.', async () => {
    const suspended = await stage.newTenant({ requestsPerMinute: 1 });
    for (const path of ['/healthz', '/readyz']) {
      // Not even the limits of a tenant whose key comes along apply.
      for (let attempt = 0; attempt < 3; attempt += 1) {
        expect((await call(`${stage.server.url}${path}`, { key: suspended.key })).status).toBe(200);
      }
    }
  });

  test('[endpoints-5] Response bodies of the health endpoints: not shown. `/healthz` = process alive, `/readyz` = catalog, encoder and disk usable and not draining', async () => {
    const alive = await call(`${stage.server.url}/healthz`);
    const ready = await call(`${stage.server.url}/readyz`);
    expect(alive.body).toBeTypeOf('object');
    const text = JSON.stringify(ready.body);
    for (const part of ['catalog', 'encoder', 'disk']) expect(text).toContain(part);
  });

  test('[decision-23] `/metrics` (separate port)', async () => {
    const { metricsUrl, url } = stage.server;
    const metrics = await call(metricsUrl ?? '');
    expect(metrics.status).toBe(200);
    expect(metrics.text).toMatch(/^# TYPE \S+ (counter|gauge|histogram|summary)$/m);
    expect((await call(`${url}/metrics`)).status).toBe(404);
  });
});
