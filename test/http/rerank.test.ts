/** The order and the scores of a re-rank answer whose documents are not all scored. */
import { expect, it } from 'vitest';
import { startHttp } from '../support/http/http-server.ts';

it('ranks documents without a score last, not above a negative score', async () => {
  const http = await startHttp();
  const rerank = async (scores: readonly (readonly [string, number])[], more: object = {}) => {
    http.service.ranked = {
      results: scores.map(([docId, score]) => ({
        docId,
        score,
        normalizedScore: Math.max(0, score / 10),
        chunkId: `transient_${docId}`,
        chunkIndex: 0,
        metadata: '{}',
      })),
      usage: { inputTokens: 3, documentCount: 0, chunkCount: 0, candidateCount: 4, latencyMs: 1 },
    };
    const payload = { model: 'default', query: 'q', documents: ['a', ' ', 'c', ' '], ...more };
    const answer = await http.inject({ method: 'POST', url: '/v2/rerank', payload });
    const { results } = answer.json<{ results: { index: number; relevance_score: number }[] }>();
    return results.map(({ index, relevance_score: score }) => [index, score]);
  };
  const positive = [
    ['2', 7],
    ['0', 5],
  ] as const;
  expect(await rerank(positive)).toEqual([
    [2, 7],
    [0, 5],
    [1, 0],
    [3, 0],
  ]);
  expect(
    await rerank([
      ['2', 7],
      ['0', -5],
    ]),
  ).toEqual([
    [2, 7],
    [0, -5],
    [1, -5],
    [3, -5],
  ]);
  expect(await rerank(positive, { top_n: 3 })).toEqual([
    [2, 7],
    [0, 5],
    [1, 0],
  ]);
  expect(await rerank(positive, { top_n: 1 })).toEqual([[2, 7]]);
  expect(await rerank([])).toEqual([
    [0, 0],
    [1, 0],
    [2, 0],
    [3, 0],
  ]);
  await http[Symbol.asyncDispose]();
});
