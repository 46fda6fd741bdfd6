/** The rate limit holds over restarts. */
import { describe, expect, it } from 'vitest';
import { steadyNowMs } from '../../../src/service/limits/steady-clock.ts';
import type { RequestContext } from '../../../src/service/contract.ts';
import {
  documentsOf,
  openServiceStage,
  rejection,
  type ServiceStage,
  type TenantStage,
} from '../../support/stages/service-stage.ts';

const requestsPerMinute = 4;

describe('a clock that is wrong for a while', () => {
  const monthMs = 31 * 86_400_000;
  const limit = 10;

  /** Returns how many of these requests are admitted. Each of those is answered, and so recorded. */
  async function admitted(stage: ServiceStage, tenant: TenantStage, requests: number): Promise<number> {
    let count = 0;
    for (let request = 0; request < requests; request += 1) {
      const admission = await stage.service.admit(`Bearer ${tenant.apiKey}`).catch(() => undefined);
      if (admission === undefined) continue;
      await stage.service.countRequest(tenant.context());
      admission.permit.release();
      count += 1;
    }
    return count;
  }

  it('lets nobody exceed the limit after restarts, and locks nobody out', async () => {
    const ahead = await openServiceStage();
    const tenant = await ahead.newTenant({ requestsPerMinute: limit });
    ahead.clock.ms += monthMs;
    expect(await admitted(ahead, tenant, 1)).toBe(1);
    await ahead.service.drain();

    // The clock is right again, and the process is started again and again within a minute.
    let sum = 1;
    for (let start = 0; start < 4; start += 1) {
      const stage = await openServiceStage(ahead.directory);
      stage.clock.ms += start * 1_000;
      sum += await admitted(stage, tenant, limit);
      await stage.service.drain();
    }
    expect(sum).toBe(limit);
    await using later = await openServiceStage(ahead.directory);
    later.clock.ms += 64_000;
    expect(await admitted(later, tenant, limit)).toBe(limit);
  });

  it('does not matter to a running process, whose time goes on from its start', () => {
    const real = Date.now;
    const before = steadyNowMs();
    Date.now = () => real() + monthMs;
    try {
      expect(steadyNowMs() - before).toBeLessThan(60_000);
    } finally {
      Date.now = real;
    }
    expect(Math.abs(steadyNowMs() - Date.now())).toBeLessThan(60_000);
  });
});

describe('the rate of a tenant is kept over a crash and a restart', () => {
  it.each(['searches', 'writes', 'other requests'])('when it sends %s', async (kind) => {
    const crashed = await openServiceStage();
    const { service } = crashed;
    const { apiKey, context, createIndex } = await crashed.newTenant({ requestsPerMinute });
    const indexId = await createIndex();
    const work = async (request: RequestContext, count: number): Promise<unknown> => {
      if (kind === 'searches')
        return service.search(request, indexId, { query: 'word', returnComponents: false });
      if (kind === 'other requests') return service.listIndexes(request);
      return count % 2 === 0
        ? service.upsertDocuments(request, indexId, documentsOf({ a: 'word' }))
        : service.deleteDocument(request, indexId, 'a');
    };
    for (let count = 0; count < requestsPerMinute; count++) {
      const { permit } = await service.admit(`Bearer ${apiKey}`);
      const request = context();
      await work(request, count);
      await service.countRequest(request);
      permit.release();
    }

    // The first service never ends, as if it had been killed.
    const restarted = await openServiceStage(crashed.directory);
    const refused = { code: 'rate_limit_exceeded' };
    expect(await rejection(restarted.service.admit(`Bearer ${apiKey}`))).toMatchObject(refused);
    await restarted.service.drain();
    await using last = await openServiceStage(crashed.directory);
    expect(await rejection(last.service.admit(`Bearer ${apiKey}`))).toMatchObject(refused);
    last.clock.ms += 60_000;
    (await last.service.admit(`Bearer ${apiKey}`)).permit.release();
    await service.drain();
  });
});
