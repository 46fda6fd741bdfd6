/** "Never more than N in any 60 s" does not begin anew with the process. */
import { describe, expect, it } from 'vitest';
import type { RequestContext } from '../../../src/service/contract.ts';
import { documentsOf, openServiceStage, rejection } from '../../support/stages/service-stage.ts';

const requestsPerMinute = 4;

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

    // Beside one that never ended, as if that had been killed.
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
