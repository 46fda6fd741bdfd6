/**
 * `candidate_k` where it matters: an index too large for the exact-scan budget (set to almost nothing here), whose
 * documents but for the last few lie in a sealed segment with codes; those of the active segment are scored exactly in
 * any case.
 */
import { beforeAll, describe, expect, test } from 'vitest';

import { expectReply } from '../../../support/running/client.ts';
import { readMetric } from '../../../support/running/server.ts';
import { createRandom } from '../../../support/running/random.ts';
import { useStage } from '../../../support/running/stage.ts';
import { find, makeIndex, put } from '../../../support/running/requests.ts';
import { passages, recombine } from '../../../support/running/texts.ts';
import { index, rankedWithComponents } from '../../../support/running/wire.ts';

const segmentTokenVectors = 36_000;
const batchDocuments = 50;
const stage = useStage({
  sharedEncoder: true,
  metrics: true,
  env: { MAXSIMD_RECALL_TARGET: '0.985' },
  constants: { exactTokenVectorsMax: 1, segmentTokenVectorsMax: segmentTokenVectors, measuresAll: true },
});

describe('Candidates', () => {
  let id = '';
  const considered = async (body: Readonly<Record<string, unknown>>): Promise<number> =>
    (await find(stage.client, id, { query: 'wild yeasts and bacteria', ...body })).usage.candidate_count;

  beforeAll(async () => {
    const random = createRandom(11);
    ({ id } = await makeIndex(stage.client));
    await put(
      stage.client,
      id,
      passages.map((passage) => ({ doc_id: passage.subject, text: passage.text, metadata: { rare: true } })),
    );
    const isFull = async () =>
      (await readMetric(stage.server, 'maxsimd_store_token_vectors')) >= segmentTokenVectors;
    for (let batch = 0; !(await isFull()); batch += 1) {
      const documents = Array.from({ length: batchDocuments }, (_, position) => ({
        doc_id: `d${batch}-${position}`,
        text: recombine(random, 3),
      }));
      await put(stage.client, id, documents);
    }
  });

  test('a sealed segment gets codes in the background', async () => {
    await expect.poll(() => considered({})).toBeLessThan(200 + batchDocuments);
  });

  test('[decision-11] `candidate_count` as the number of candidates considered. `candidate_k` min(500, max(200, 5 x top_k)), an explicit one below top_k is raised to it; `candidate_count` = chunks scored exactly', async () => {
    // Chunks of the active segment, which have no codes to choose by: every search scores them.
    const active = (await considered({ candidate_k: 1, top_k: 1 })) - 1;
    expect(active).toBeLessThan(batchDocuments);
    const chosen = async (body: Readonly<Record<string, unknown>>) => (await considered(body)) - active;
    expect(await chosen({})).toBe(200);
    expect(await chosen({ top_k: 1 })).toBe(200);
    expect(await chosen({ top_k: 40 })).toBe(200);
    expect(await chosen({ top_k: 60 })).toBe(300);
    expect(await chosen({ top_k: 100 })).toBe(500);
    expect(await chosen({ candidate_k: 500 })).toBe(500);
    expect(await chosen({ candidate_k: 37 })).toBe(37);
    expect(await chosen({ candidate_k: 5, top_k: 80 })).toBe(80);
  });

  test('candidates find what an exact scan finds', async () => {
    // A filter that leaves fewer documents than candidates makes the search exact for these.
    let expected = 0;
    let found = 0;
    for (const { question } of passages) {
      const body = { query: question, top_k: 100 };
      const exact = await find(stage.client, id, { ...body, filter: { rare: true } });
      expect(exact.results).toHaveLength(passages.length);
      const { results } = await find(stage.client, id, body);
      const last = results.at(-1)?.score ?? Number.NaN;
      const scores = new Map(results.map((result) => [result.doc_id, result.score]));
      for (const { doc_id: docId, score } of exact.results) {
        if (score <= last) continue;
        expected += 1;
        if (scores.get(docId) === score) found += 1;
      }
    }
    console.log(`candidates found ${found} of ${expected}`);
    expect(expected).toBeGreaterThan(passages.length);
    expect(found / expected).toBeGreaterThanOrEqual(0.98);
  });

  test('the recall of searches is measured', async () => {
    const recallOf = async () => {
      // After a move of the breadth there is no recall until another search is measured.
      await considered({});
      return expectReply(await stage.client.send('GET', `/v1/indexes/${id}`), index).recall;
    };
    await expect.poll(recallOf).toMatchObject({
      at_10: { high: expect.closeTo(1, 1) as number },
      at_100: { mean: expect.any(Number) as number },
      breadth: expect.any(Number) as number,
    });
    expect(
      await readMetric(stage.server, `maxsimd_index_recall_at_10{index="${id}",bound="mean"}`),
    ).toBeGreaterThan(0.9);
    expect(await readMetric(stage.server, 'maxsimd_recall_target')).toBe(0.985);
  });

  test('components name the candidate’s rank and score when candidates were preselected', async () => {
    const reply = await stage.client.search(id, {
      query: 'wild yeasts and bacteria',
      return_components: true,
    });
    for (const { components } of expectReply(reply, rankedWithComponents).results) {
      expect(components.candidate_rank).toBeGreaterThanOrEqual(0);
      expect(components.candidate_score).toBeTypeOf('number');
    }
  });

  test('a filter narrows the candidates before they are chosen', async () => {
    const { results } = await find(stage.client, id, {
      query: 'river',
      candidate_k: 40,
      top_k: 40,
      filter: { rare: true },
    });
    expect(results.map((result) => result.doc_id).toSorted()).toEqual(
      passages.map((passage) => passage.subject).toSorted(),
    );
  });
});
