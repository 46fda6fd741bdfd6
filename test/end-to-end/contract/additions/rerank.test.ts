/** `POST /v2/rerank`: an addition of ours, in the shapes of Cohere and Jina. `test/http/rerank.test.ts` has the other rules. */
import { expect, test } from 'vitest';

import { connect, expectError, expectInvalid, expectReply } from '../../../support/running/client.ts';
import { useStage } from '../../../support/running/stage.ts';
import { find, makeIndex, put, readUsage } from '../../../support/running/requests.ts';
import { passages, textOfTokens } from '../../../support/running/texts.ts';
import { ranked, rankedByDocument, reranked, type Reranked } from '../../../support/running/wire.ts';

// Its encoder serves both models that are shipped.
const stage = useStage({ sharedEncoder: true });
const query = passages[3]!.question;
const texts = passages.slice(0, 6).map(({ text }) => text);

const send = (body: Readonly<Record<string, unknown>>, client = stage.client) =>
  client.send('POST', '/v2/rerank', { body: { model: 'default', query, ...body } });

const rerank = async (body: Readonly<Record<string, unknown>>): Promise<Reranked> =>
  expectReply(await send(body), reranked);

test('has the scores and the order of `/v1/score`, and the positions of the documents', async () => {
  const documents = texts.map((text, at) => ({ doc_id: String(at), text }));
  const scored = expectReply(await stage.client.score({ query, documents }), ranked);
  const { results, meta, usage, model } = await rerank({ documents: texts });
  expect(results).toEqual(
    scored.results.map(({ doc_id, score, normalized_score }) => ({
      index: Number(doc_id),
      relevance_score: score,
      normalized_score,
    })),
  );
  expect(results[0]?.index).toBe(3);
  expect(meta.billed_units.input_tokens).toBe(scored.usage.input_tokens);
  expect(usage.total_tokens).toBe(scored.usage.input_tokens);
  expect(model).toBe('default');
});

test('has a result for every document: those without a token come last, in the order of the request', async () => {
  const whales = ['An elephant is big.', ' ', 'The blue whale is the largest animal.', '\n'];
  const ask = { query: 'largest animal', documents: whales };
  const { results } = await rerank({ ...ask, return_documents: true });
  expect(results.map(({ index }) => index)).toEqual([2, 0, 1, 3]);
  const lowest = Math.min(0, results[1]!.relevance_score);
  expect(results.slice(2)).toEqual([
    { index: 1, relevance_score: lowest, normalized_score: 0, document: { text: ' ' } },
    { index: 3, relevance_score: lowest, normalized_score: 0, document: { text: '\n' } },
  ]);
  expect((await rerank({ ...ask, top_n: 3 })).results.map(({ index }) => index)).toEqual([2, 0, 1]);
  expect((await rerank({ ...ask, documents: [' ', ' '] })).results).toEqual([
    { index: 0, relevance_score: 0, normalized_score: 0 },
    { index: 1, relevance_score: 0, normalized_score: 0 },
  ]);
  const documents = whales.map((text, at) => ({ doc_id: String(at), text }));
  const scored = expectReply(await stage.client.score({ ...ask, documents }), ranked);
  expect(scored.results.map(({ doc_id: docId }) => docId)).toEqual(['2', '0']);
});

test("takes Jina's request: objects with a text, `top_n`, and texts in the answer", async () => {
  const reply = await send({
    documents: [{ text: texts[0] }, texts[3], { text: texts[1] }],
    top_n: 2,
    return_documents: true,
  });
  const { id, results } = expectReply(reply, reranked);
  expect(id).toBe(reply.headers.get('x-request-id'));
  expect(results).toHaveLength(2);
  expect(results[0]).toMatchObject({ index: 1, document: { text: texts[3] } });
  const more = await rerank({ documents: texts, top_n: 1000, return_documents: false });
  expect(more.results).toHaveLength(texts.length);
});

test('takes null for a field that is absent', async () => {
  const absent = { top_n: null, return_documents: null, max_tokens_per_doc: null, priority: null };
  expect((await rerank({ documents: texts, ...absent })).results).toEqual(
    (await rerank({ documents: texts })).results,
  );
});

test('ranks by the model that it names', async () => {
  const { client } = stage;
  const { id, model } = await makeIndex(client, { model: 'minilm-l6-maxsim' });
  await put(
    client,
    id,
    texts.map((text, at) => ({ doc_id: String(at), text })),
  );
  const searched = new Map(
    (await find(client, id, { query })).results.map(({ doc_id, score }) => [Number(doc_id), score]),
  );
  const named = await rerank({ model, documents: texts });
  for (const { index, relevance_score: score } of named.results)
    expect(score).toBeCloseTo(searched.get(index) ?? Number.NaN, 1);
  expect(named.results[0]?.relevance_score).not.toBeCloseTo(
    (await rerank({ documents: texts })).results[0]?.relevance_score ?? 0,
    1,
  );
  const { message } = expectInvalid(await send({ model: 'rerank-v3.5', documents: texts }), 'model');
  expect(message).toMatch(/the names are default, .*minilm-l6-maxsim/);
  expect((await rerank({ model: undefined, documents: texts })).model).toBe('default');
});

test('refuses a request beyond its bounds, and says which', async () => {
  const refused = [
    ['documents', { documents: Array.from({ length: 1001 }, () => 'river') }, /at most 1000 items/],
    ['documents', { documents: [] }, /at least 1 item/],
    ['documents.0', { documents: [{ title: 'river' }] }, /a string or an object with a `text`/],
    ['query', { query: '', documents: texts }, /must not be empty/],
    ['top_n', { documents: texts, top_n: 0 }, /at least 1/],
    ['priority', { documents: texts, priority: 1 }, /must be 0/],
    ['colour', { documents: texts, colour: 'red' }, /unknown property/],
  ] as const;
  for (const [path, body, message] of refused)
    expect(expectInvalid(await send(body), path).message).toMatch(message);
});

test('cuts documents at `max_tokens_per_doc`, charges what is left, and ranks by that alone', async () => {
  const { client } = await stage.newTenant();
  const answer = `${textOfTokens(64)} The blue whale is the largest animal.`;
  const ask = { query: 'largest animal', documents: ['A house.', answer, textOfTokens(64)] };
  const whole = expectReply(await send(ask, client), reranked);
  expect(whole.results[0]?.index).toBe(1);
  expect(whole.meta.warnings).toBeUndefined();
  const cut = expectReply(await send({ ...ask, max_tokens_per_doc: 64 }, client), reranked);
  const scoreOf = (at: number) => cut.results.find(({ index }) => index === at)?.relevance_score;
  expect(scoreOf(1)).toBeCloseTo(scoreOf(2) ?? Number.NaN, 1);
  expect(cut.meta.warnings).toEqual(['only the first 64 tokens (max_tokens_per_doc) count of 1 document']);
  expect(cut.usage.total_tokens).toBeLessThan(whole.usage.total_tokens);
  const charged = whole.usage.total_tokens + cut.usage.total_tokens;
  expect((await readUsage(client)).usage.input_tokens).toBe(String(charged));
});

test('has `normalized_score` between 0 and 1 in searches and scores, and `min_score` on it', async () => {
  const { client } = stage;
  const { id } = await makeIndex(client);
  await put(
    client,
    id,
    texts.map((text, at) => ({ doc_id: String(at), text })),
  );
  const found = await find(client, id, { query, exact: true });
  const shares = found.results.map(({ normalized_score: share }) => share);
  expect(shares.toSorted((a, b) => b - a)).toEqual(shares);
  expect(shares[0]).toBeGreaterThan(0.5);
  expect(shares[0]).toBeLessThanOrEqual(1);
  const least = shares[1]!;
  expect((await find(client, id, { query, min_score: least })).results).toHaveLength(2);
  const grouped = await client.search(id, { query, min_score: least, group_by_document: true });
  expect(expectReply(grouped, rankedByDocument).results).toHaveLength(2);
  const documents = texts.map((text, at) => ({ doc_id: String(at), text }));
  const scored = expectReply(
    await client.send('POST', '/v1/score', { body: { query, documents, min_score: 1 } }),
    ranked,
  );
  expect(scored.results).toEqual([]);
});

test('has the keys, limits and usage of `/v1`', async () => {
  const { client } = await stage.newTenant({ requestsPerMinute: 5, inputTokens: 7 });
  expectReply(await send({ query: 'river', documents: ['river stone', 'house'] }, client), reranked);
  expectError(
    await send({ query: 'river', documents: ['river stone house'] }, client),
    429,
    'usage_limit_exceeded',
  );
  expect((await readUsage(client)).usage).toMatchObject({ input_tokens: '4', scores: 1, searches: 0 });
  const unknown = await client.send('POST', '/v2/nothing', { body: {} });
  expectError(unknown, 404, 'not_found');
  expect(unknown.headers.get('ratelimit-remaining')).toBe('1');
  await readUsage(client);
  expectError(await send({ documents: texts }, client), 429, 'rate_limit_exceeded');
  const stranger = connect(stage.server.url, 'qkv_live_wrong');
  expectError(await send({ documents: texts }, stranger), 401, 'authentication_failed');
});
