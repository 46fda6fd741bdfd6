/** The specification's first section: what the service does. */
import { describe, expect, test } from 'vitest';

import { expectReply } from '../../support/running/client.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { passages } from '../../support/running/texts.ts';
import { indexList } from '../../support/running/wire.ts';

const stage = await useContractStage();

describe('What the service does', () => {
  test('[what-the-service-does-9] The service does not return conventional embedding vectors.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(client, id, [{ doc_id: 'one', text: passages[1]?.text ?? '' }]);
    const replies = [
      await client.search(id, { query: 'sourdough', return_components: true }),
      await client.score({
        query: 'sourdough',
        documents: [{ doc_id: 'one', text: 'bread' }],
        return_components: true,
      }),
    ];
    for (const reply of replies) {
      expect(reply.status).toBe(200);
      expect(reply.text).not.toMatch(/vector|embedding/i);
      // No array of more than a handful of bare numbers, whatever it may be called.
      expect(reply.text).not.toMatch(/\[(\s*-?[0-9.eE+-]+\s*,){8}/);
    }
  });

  test('[what-the-service-does-10] Everything is tenant-scoped: an API key identifies one tenant, and indexes and usage belong to that tenant.', async () => {
    const other = await stage.newTenant();
    const mine = await makeIndex(stage.client, { name: 'same name in two tenants' });
    const theirs = await makeIndex(other.client, { name: 'same name in two tenants' });
    expect(expectReply(await other.client.listIndexes(), indexList).data).toEqual([theirs]);
    expect(theirs.id).not.toBe(mine.id);
    await put(other.client, theirs.id, [{ doc_id: 'one', text: 'river stone' }]);
    const before = await readUsage(other.client);
    await put(stage.client, mine.id, [{ doc_id: 'one', text: 'river stone house green' }]);
    const after = await readUsage(other.client);
    expect(after.usage.input_tokens).toBe('2');
    expect({ ...after.usage, requests: 0 }).toEqual({ ...before.usage, requests: 0 });
  });
});
