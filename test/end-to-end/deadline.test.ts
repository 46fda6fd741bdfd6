/** Deadlines: a request that cannot be done in time is refused and leaves no trace. */
import { describe, expect, test } from 'vitest';

import { expectError } from '../support/running/client.ts';
import { eventually } from '../support/running/eventually.ts';
import { useStage } from '../support/running/stage.ts';
import { find, makeIndex, readUsage, sendLong } from '../support/running/requests.ts';
import { textOfTokens } from '../support/running/texts.ts';

const stage = useStage({ env: { MAXSIMD_TIMEOUT_UPSERT_MS: '700', MAXSIMD_TIMEOUT_SEARCH_MS: '700' } });

describe('Deadlines', () => {
  const large = Array.from({ length: 50 }, (_, position) => ({
    doc_id: `d${position}`,
    text: textOfTokens(4000),
  }));

  test('[decision-42] past its deadline a request gets 503 with `Retry-After`, and nothing is stored', async () => {
    const tenant = await stage.newTenant({ requestsPerMinute: 100_000, maxConcurrentRequests: 1 });
    const { client } = tenant;
    const { id } = await makeIndex(client);
    // On a busy machine even one document may miss so short a deadline.
    const kept = [{ doc_id: 'kept', text: 'river' }];
    await eventually(async () => (await client.upsert(id, kept)).status === 200);
    const before = await readUsage(client);
    const requests = [
      () => client.upsert(id, large),
      () => client.score({ query: 'river', documents: large }),
    ];
    for (const request of requests) {
      const started = performance.now();
      const reply = await request();
      expectError(reply, 503, 'service_unavailable');
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(performance.now() - started).toBeLessThan(60_000);
      // The slot is free once the work was dropped.
      await eventually(async () => (await client.usage()).status === 200);
    }
    const after = await readUsage(client);
    expect({ ...after.usage, requests: 0 }).toEqual({ ...before.usage, requests: 0 });
    // The work was dropped: the next small request is in time.
    await eventually(async () => (await client.search(id, { query: 'river' })).status === 200);
    const { results } = await find(client, id, { query: 'river' });
    expect(results.map((result) => result.doc_id)).toEqual(['kept']);
  });

  test('a client that goes away frees its slot and its work, and is not charged', async () => {
    const tenant = await stage.newTenant({ requestsPerMinute: 100_000, maxConcurrentRequests: 1 });
    const { client } = tenant;
    const { id } = await makeIndex(client);
    for (let round = 0; round < 5; round += 1) {
      const leaving = new AbortController();
      const abandoned = await sendLong(client, () =>
        client.send('POST', `/v1/indexes/${id}/documents`, {
          body: { documents: large },
          signal: leaving.signal,
        }),
      );
      leaving.abort();
      await expect(abandoned.reply).rejects.toThrow(/abort/i);
      await eventually(async () => (await client.usage()).status === 200);
    }
    const { usage } = await readUsage(client);
    expect(usage).toMatchObject({ documents: 0, document_upserts: 0, input_tokens: '0' });
  });
});
