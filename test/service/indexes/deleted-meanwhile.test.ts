/** Requests while their index is being deleted, on one process. `deleted-meanwhile-cluster.test.ts` does the same on a cluster. */
import { expect, it } from 'vitest';
import { openServiceStage } from '../../support/stages/service-stage.ts';
import { hookCatalog, wrongAnswers } from './deleted-meanwhile.ts';

it('a request whose index is deleted at any moment answers as before, or 404', async () => {
  await using stage = await openServiceStage();
  const { tenant, context } = await stage.newTenant({ requestsPerMinute: 1_000_000, documents: 1_000_000 });
  const wrong = await wrongAnswers({
    service: stage.service,
    hooked: hookCatalog(stage.catalog),
    context,
    erase: (id) => stage.service.deleteIndex(context(), id),
  });
  expect(wrong).toEqual([]);
  expect(tenant.id).toBeDefined();
});
