/** The request usage object and "Get usage and limits". */
import { describe, expect, test } from 'vitest';

import { connect, expectReply } from '../../support/running/client.ts';
import { announceRandom } from '../../support/running/random.ts';
import { useContractStage } from '../../support/stages/contract-stage.ts';
import { find, makeIndex, put, readUsage } from '../../support/running/requests.ts';
import { passages, recombine, textOfTokens } from '../../support/running/texts.ts';
import { deleted, ranked, upserted, usageSummary } from '../../support/running/wire.ts';

const stage = await useContractStage();

describe('Request usage object', () => {
  test('[request-usage-object-1] All fields are integers, minimum 0: `input_tokens`, `document_count`, `chunk_count`, `candidate_count`, `latency_ms`.', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    const started = performance.now();
    const { usage } = await put(client, id, [{ doc_id: 'a', text: textOfTokens(50) }]);
    const elapsed = performance.now() - started;
    for (const value of Object.values(usage)) expect(Number.isSafeInteger(value) && value >= 0).toBe(true);
    expect(usage.latency_ms).toBeLessThanOrEqual(Math.ceil(elapsed));
  });

  test('[request-usage-object-2] an upsert reports `document_count` and `chunk_count` and has `candidate_count` 0', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client, {
      chunking: { max_tokens: 10, overlap_tokens: 0, minimum_chunk_tokens: 1 },
    });
    const reply = await put(client, id, [
      { doc_id: 'a', text: textOfTokens(25) },
      { doc_id: 'b', text: textOfTokens(5) },
    ]);
    expect(reply.upserted_chunks).toBe(4);
    expect(reply.usage).toMatchObject({
      input_tokens: 30,
      document_count: 2,
      chunk_count: 4,
      candidate_count: 0,
    });
  });

  test('[request-usage-object-3] a search reports `document_count` 0, `chunk_count` equal to the number of returned results, and `candidate_count` as the number of candidates considered', async () => {
    const { client } = stage;
    const { id } = await makeIndex(client);
    await put(
      client,
      id,
      passages.slice(0, 20).map((passage) => ({ doc_id: passage.subject, text: passage.text })),
    );
    const { results, usage } = await find(client, id, { query: 'river stone house', top_k: 7 });
    expect(results).toHaveLength(7);
    expect(usage).toMatchObject({ input_tokens: 3, document_count: 0, chunk_count: 7, candidate_count: 20 });
  });
});

describe('Get usage and limits', () => {
  test('[get-usage-and-limits-1] `GET /v1/usage` No request body. Response: the tenant usage summary (see Resources) for the current UTC calendar month, the limits assigned to the tenant, and the remaining token and document allowances.', async () => {
    const limits = { requestsPerMinute: 500, maxConcurrentRequests: 7, inputTokens: 1000, documents: 9 };
    const tenant = await stage.newTenant(limits);
    const { id } = await makeIndex(tenant.client);
    await put(tenant.client, id, [{ doc_id: 'a', text: textOfTokens(100) }]);
    const summary = await readUsage(tenant.client);
    expect(summary.limits).toEqual({
      input_tokens: '1000',
      documents: 9,
      requests_per_minute: 500,
      max_concurrent_requests: 7,
    });
    expect(summary.remaining).toEqual({ input_tokens: '900', documents: 8 });
  });

  test('[tenant-usage-summary-1, limits-15, decision-31, conventions-4] `period_start`, `period_end` | ISO 8601 UTC timestamps bounding the current UTC calendar month. The usage period is the current UTC calendar month. `period_end` is the first instant of the next month', async () => {
    const before = new Date();
    const summary = await readUsage(stage.client);
    const now = Date.parse(summary.period_start) > before.getTime() ? new Date() : before;
    expect(Date.parse(summary.period_start)).toBe(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()));
    expect(Date.parse(summary.period_end)).toBe(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1));
  });

  test('[tenant-usage-summary-2, tenant-usage-summary-3] `usage.input_tokens` | string, decimal integer; `usage.requests`, `usage.document_upserts`, `usage.searches`, `usage.scores`, `usage.documents` | integers', async () => {
    const tenant = await stage.newTenant();
    const fresh = (await readUsage(tenant.client)).usage;
    expect({ ...fresh, requests: 0 }).toEqual({
      input_tokens: '0',
      requests: 0,
      document_upserts: 0,
      searches: 0,
      scores: 0,
      documents: 0,
    });
  });

  test('[tenant-usage-summary-4, tenant-usage-summary-5, limits-1] `limits.input_tokens` | string, decimal integer; `limits.documents`, `limits.requests_per_minute`, `limits.max_concurrent_requests` | integers. Defaults apply unless onboarding assigned different values; `GET /v1/usage` returns the values assigned to the tenant.', async () => {
    const other = await stage.newTenant({ documents: 5 });
    expect((await readUsage(other.client)).limits).toEqual({
      input_tokens: '50000000',
      documents: 5,
      requests_per_minute: 60,
      max_concurrent_requests: 2,
    });
  });

  test('[tenant-usage-summary-6, tenant-usage-summary-7] `remaining.input_tokens` | string, decimal integer; `remaining.documents` | integer', async () => {
    const tenant = await stage.newTenant({ inputTokens: 30, documents: 3, requestsPerMinute: 1000 });
    const { id } = await makeIndex(tenant.client);
    await put(tenant.client, id, [
      { doc_id: 'a', text: textOfTokens(10) },
      { doc_id: 'b', text: textOfTokens(10) },
    ]);
    expect((await readUsage(tenant.client)).remaining).toEqual({ input_tokens: '10', documents: 1 });
    await tenant.client.deleteDocument(id, 'a');
    // A deletion makes room for documents; tokens are spent.
    expect((await readUsage(tenant.client)).remaining).toEqual({ input_tokens: '10', documents: 2 });
    await find(tenant.client, id, { query: textOfTokens(10) });
    expect((await readUsage(tenant.client)).remaining).toEqual({ input_tokens: '0', documents: 2 });
  });

  test('remaining allowances are 0, never negative, when the limits were lowered below what is used', async () => {
    const tenant = await stage.newTenant();
    const { id } = await makeIndex(tenant.client);
    await put(tenant.client, id, [
      { doc_id: 'a', text: textOfTokens(10) },
      { doc_id: 'b', text: 'river' },
    ]);
    await stage.operate('tenant', 'limits', tenant.id, '--input-tokens', '5', '--documents', '1');
    await expect
      .poll(async () => (await readUsage(tenant.client)).remaining)
      .toEqual({ input_tokens: '0', documents: 0 });
  });

  test('the summary adds up to the responses given', async () => {
    const random = announceRandom('usage adds up');
    const tenant = await stage.newTenant();
    const { client } = tenant;
    const { id } = await makeIndex(client);
    const selfCounted = (await readUsage(client)).usage.requests - 1;
    const sum = { tokens: 0n, requests: 2, upserts: 0, searches: 0, scores: 0 };
    const stored = new Set<string>();
    for (let step = 0; step < 60; step += 1) {
      const kind = random.pick(['upsert', 'delete', 'search', 'score', 'invalid', 'missing', 'list']);
      sum.requests += 1;
      if (kind === 'upsert') {
        const ids = new Set(Array.from({ length: random.integer(1, 4) }, () => `d${random.integer(0, 20)}`));
        const documents = [...ids].map((docId) => ({
          doc_id: docId,
          text: random.next() < 0.2 ? ' ' : recombine(random, 12),
        }));
        const reply = expectReply(await client.upsert(id, documents), upserted);
        const failed = new Set(reply.failed.map((failure) => failure.doc_id));
        for (const docId of ids) if (!failed.has(docId)) stored.add(docId);
        sum.upserts += reply.upserted_documents;
        sum.tokens += BigInt(reply.usage.input_tokens);
      } else if (kind === 'delete') {
        const docId = `d${random.integer(0, 20)}`;
        expect(expectReply(await client.deleteDocument(id, docId), deleted).deleted).toBe(
          stored.delete(docId),
        );
      } else if (kind === 'search') {
        const { usage } = await find(client, id, { query: random.pick(passages).question });
        sum.searches += 1;
        sum.tokens += BigInt(usage.input_tokens);
      } else if (kind === 'score') {
        const documents = [{ doc_id: 'a', text: recombine(random, 12) }];
        const { usage } = expectReply(
          await client.score({ query: random.pick(passages).question, documents }),
          ranked,
        );
        sum.scores += 1;
        sum.tokens += BigInt(usage.input_tokens);
      } else if (kind === 'invalid') {
        expect((await client.search(id, { query: '' })).status).toBe(422);
      } else if (kind === 'missing') {
        expect((await client.search('00000000-0000-4000-8000-000000000000', { query: 'river' })).status).toBe(
          404,
        );
      } else {
        expect((await client.listIndexes()).status).toBe(200);
      }
    }
    const { usage } = await readUsage(client);
    expect(usage).toEqual({
      input_tokens: String(sum.tokens),
      // Create index, first summary, the steps; the last summary as the first one counted itself.
      requests: sum.requests + selfCounted,
      document_upserts: sum.upserts,
      searches: sum.searches,
      scores: sum.scores,
      documents: stored.size,
    });
  });

  test('[decision-32] `requests`: /v1 requests answered, 401 and 429 excluded; `document_upserts`: documents upserted; `documents`: stored now', async () => {
    const tenant = await stage.newTenant({ requestsPerMinute: 1000, inputTokens: 5 });
    const { client } = tenant;
    const { id } = await makeIndex(client);
    const before = (await readUsage(client)).usage;
    expect((await connect(client.url, `${tenant.key}x`).usage()).status).toBe(401);
    expect((await client.search(id, { query: textOfTokens(6) })).status).toBe(429);
    expect((await client.search(id, { query: '' })).status).toBe(422);
    expect((await client.send('GET', '/v1/nowhere')).status).toBe(404);
    await put(client, id, [{ doc_id: 'a', text: 'river' }]);
    await put(client, id, [{ doc_id: 'a', text: 'stone' }]);
    expectReply(await client.deleteDocument(id, 'a'), deleted);
    const after = expectReply(await client.usage(), usageSummary).usage;
    // 422, 404, two upserts, one deletion, and one summary more than before.
    expect(after.requests - before.requests).toBe(6);
    expect(after).toMatchObject({ document_upserts: 2, documents: 0, searches: 0, input_tokens: '2' });
  });
});
