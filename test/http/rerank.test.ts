/** Re-rank requests of other services' programs on the whole service, with the encoder of words. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startHttp, type Harness } from '../support/http/http-server.ts';

let http: Harness;
beforeAll(async () => {
  // The encoder of words takes seconds for long lists on a busy machine.
  http = await startHttp({ timeouts: { searchMs: 120_000 } });
});
afterAll(() => http[Symbol.asyncDispose]());
beforeEach(() => {
  http.service.ranked = undefined;
});

interface Answer {
  readonly results: readonly {
    readonly index: number;
    readonly relevance_score: number;
    readonly normalized_score: number;
    readonly document?: { readonly text: string };
    readonly relevant_spans?: readonly {
      readonly start: number;
      readonly end: number;
      readonly score: number;
    }[];
  }[];
  readonly model: string;
  readonly meta: { readonly warnings?: readonly string[] };
  readonly usage: { readonly total_tokens: number };
}

const send = (payload: object, url = '/v2/rerank') => http.inject({ method: 'POST', url, payload });
const rank = async (payload: object, url?: string): Promise<Answer> => {
  const answer = await send({ query: 'red', ...payload }, url);
  expect(answer.statusCode, answer.body).toBe(200);
  return answer.json<Answer>();
};
const order = ({ results }: Answer) => results.map(({ index }) => index);
const refused = async (payload: object, status = 422) => {
  const answer = await send({ query: 'red', documents: ['red'], ...payload });
  expect(answer.statusCode, answer.body).toBe(status);
  return answer.json<{
    error: { message: string; issues: { path: string }[] };
    message: string;
    detail: string;
    error_type?: string;
  }>();
};
const mapped = (object: object, nameOf: (name: string) => string) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [nameOf(name), value as unknown]));
const words = (count: number): string => 'hay '.repeat(count).trimEnd();

describe('documents without a score', () => {
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
    const { results } = await rank({ documents: ['a', '', 'c', ' '], ...more });
    return results.map(({ index, relevance_score: score }) => [index, score]);
  };

  it('come last, not above a negative score', async () => {
    const positive = [
      ['2', 7],
      ['0', 5],
    ] as const;
    const whole = [
      [2, 7],
      [0, 5],
      [1, 0],
      [3, 0],
    ];
    expect(await rerank(positive)).toEqual(whole);
    const negative = [
      ['2', 7],
      ['0', -5],
    ] as const;
    expect(await rerank(negative)).toEqual([
      [2, 7],
      [0, -5],
      [1, -5],
      [3, -5],
    ]);
    expect(await rerank(positive, { top_n: 3 })).toEqual(whole.slice(0, 3));
    expect(await rerank(positive, { top_n: 3, top_k: 1 })).toEqual(whole.slice(0, 1));
    expect(await rerank([])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 0],
    ]);
  });

  it('are left out where a score is asked for', async () => {
    expect(await rerank([['2', 7]], { min_score: 0.1 })).toEqual([[2, 7]]);
    expect(await rerank([['2', 7]], { score_threshold: -1 })).toHaveLength(4);
  });
});

describe('lists', () => {
  it('have up to 1,000 documents', async () => {
    const documents = Array.from({ length: 1000 }, (_, at) => (at === 700 ? 'red' : words(1 + (at % 3))));
    const answer = await rank({ documents });
    expect(answer.results).toHaveLength(1000);
    expect(answer.results[0]).toMatchObject({ index: 700, normalized_score: expect.any(Number) });
    expect(answer.meta.warnings).toBeUndefined();
    const { error } = await refused({ documents: [...documents, 'red'] });
    expect(error).toMatchObject({ issues: [{ path: 'documents' }] });
    expect(error.message).toContain('at most 1000 items');
  });

  it('have up to 5 MiB', async () => {
    const frame = JSON.stringify({ query: 'red', documents: [''] }).length;
    const body = (bytes: number) => ({ query: 'red', documents: ['x'.repeat(bytes - frame)] });
    const [most, more] = [5 << 20, (5 << 20) + 1];
    expect(JSON.stringify(body(most))).toHaveLength(most);
    const { meta } = await rank(body(most));
    expect(meta.warnings).toEqual(['only the first 102400 bytes were read of 1 document']);
    expect((await send(body(more))).statusCode).toBe(413);
  });

  it('are cut to 100,000 tokens if the request does not say how, and say so', async () => {
    const documents = Array.from({ length: 200 }, () => words(1000));
    const { meta, usage } = await rank({ documents });
    expect(meta.warnings).toEqual([
      'only the first 500 tokens (max_tokens_per_doc) count of 200 documents, because the list has more than the 100000 that a request may have',
    ]);
    expect(usage.total_tokens).toBe(100_001);
  });

  it('are refused before anything is encoded if they do not fit as the request says', async () => {
    const documents = Array.from({ length: 200 }, () => words(1000));
    const encoded = http.service.encoder.inferred.length;
    const { error } = await refused({ documents, max_tokens_per_doc: 800 });
    expect(error.message).toBe(
      'documents: have 160000 tokens or more together after cutting at max_tokens_per_doc 800, and a request may have 100000: send max_tokens_per_doc of at most 500, or fewer documents',
    );
    expect(http.service.encoder.inferred).toHaveLength(encoded);
    expect(order(await rank({ documents: documents.slice(0, 2), max_tokens_per_doc: 9e15 }))).toEqual([0, 1]);
  });

  it('may have ten times the tokens where all encoders run on a GPU', async () => {
    http.service.encoder.onGpu = true;
    const documents = Array.from({ length: 110 }, () => words(1000));
    expect((await rank({ documents })).meta.warnings).toBeUndefined();
    http.service.encoder.onGpu = false;
  });

  it('count each document by its first tokens alone, and by its best chunk', async () => {
    const documents = [`${words(300)} red`, words(301), 'blue'];
    expect(order(await rank({ documents }))[0]).toBe(0);
    const cut = await rank({ documents, max_tokens_per_doc: 300 });
    expect(cut.results.find(({ index }) => index === 0)?.relevance_score).toBe(
      cut.results.find(({ index }) => index === 1)?.relevance_score,
    );
    expect(cut.meta.warnings).toEqual([
      'only the first 300 tokens (max_tokens_per_doc) count of 2 documents',
    ]);
  });
});

describe('fields of other services', () => {
  it('that change nothing here are ignored and named', async () => {
    const { meta } = await rank({
      documents: ['red'],
      user: 'u',
      truncation: true,
      max_chunks_per_doc: 3,
      overlap_tokens: null,
    });
    expect(meta.warnings).toEqual(['ignored: max_chunks_per_doc, truncation, user']);
    expect((await refused({ colour: 1 })).error.issues).toMatchObject([{ path: 'colour' }]);
  });

  it('are absent if they are null', async () => {
    const nulls = { top_n: null, model: null, rank_fields: null, relevant_spans: null, texts: null };
    const documents = ['blue', { text: 'red', title: null }];
    expect(order(await rank({ documents, ...nulls }))).toEqual([1, 0]);
    expect(order(await rank({ documents: [{ text: 'red', title: null }], rank_fields: [] }))).toEqual([0]);
    const texts = await send({ query: 'red', texts: ['blue', 'red'], documents: null, top_n: 1 });
    expect(texts.json<{ index: number }[]>().map(({ index }) => index)).toEqual([1]);
  });

  it('the words that match are told, the most similar first', async () => {
    const documents = ['🎈 blue, green red', 'green', ''];
    const spansOf = async (options: object, given = documents) => {
      const body = { documents: given, relevant_spans: { mode: 'enabled', ...options } };
      return (await rank(body)).results.find(({ index }) => index === 0)!.relevant_spans!;
    };
    const all = await spansOf({ threshold: 0 });
    expect(all[0]).toMatchObject({ start: 14, end: 17 });
    expect(all[0]!.score).toBeCloseTo(1, 5);
    expect(all.map(({ score }) => score)).toEqual(all.map(({ score }) => score).toSorted((a, b) => b - a));
    expect(await spansOf({ threshold: 0.99, max_spans: 3 })).toEqual([all[0]]);
    expect(await spansOf({ max_spans: 0 })).toEqual([]);
    const disabled = await rank({ documents, relevant_spans: { mode: 'disabled' } });
    expect(disabled.results[0]).not.toHaveProperty('relevant_spans');
    const many = await rank({
      documents: Array.from({ length: 51 }, () => 'red'),
      relevant_spans: { mode: 'enabled' },
    });
    expect(many.meta.warnings).toEqual(['ignored: relevant_spans (more than 50 documents)']);
  });

  it('documents may be objects, ranked by the fields that the request names', async () => {
    const documents = [
      { title: 'blue', body: 'red', extra: { deep: [1] }, metadata: { a: 1 } },
      { title: 'red' },
      'green',
    ];
    const both = await rank({ documents, rank_fields: ['title', 'body'], return_documents: true });
    expect(both.results.find(({ index }) => index === 0)?.document).toEqual({ text: 'blue\nred' });
    expect(both.results.find(({ index }) => index === 1)?.document).toEqual({ text: 'red' });
    expect(order(await rank({ documents, rank_fields: ['body'] }))).toEqual([0, 2, 1]);
    expect(order(await rank({ documents: [{ text: 'blue', url: 'u' }, { text: 'red' }] }))).toEqual([1, 0]);
  });

  it.each([
    ['documents.0', { documents: [{ title: 'red' }] }],
    ['documents.0', { documents: [7] }],
    ['documents.0.title', { documents: [{ title: { deep: 'red' } }], rank_fields: ['title'] }],
    ['relevant_spans.mode', { relevant_spans: { mode: 'on' } }],
    ['rank_fields.0', { rank_fields: [['title']] }],
    ['rank_fields.1', { rank_fields: ['a', 'a'] }],
    ['rank_fields', { rank_fields: Array.from({ length: 11 }, (_, at) => `f${at}`) }],
    ['documents', { documents: [] }],
    ['top_k', { top_k: 0 }],
    ['min_score', { min_score: 1.5 }],
    ['score_threshold', { score_threshold: 'high' }],
    ['max_tokens_per_doc', { max_tokens_per_doc: 0 }],
    ['query', { query: '' }],
    ['priority', { priority: 1 }],
  ])('an error names %s', async (path, body) => {
    expect((await refused(body)).error.issues[0]).toMatchObject({ path });
  });

  it('no body holds values or levels without bound', async () => {
    const deep = JSON.parse(`${'['.repeat(20)}${']'.repeat(20)}`) as unknown;
    expect((await refused({ documents: [{ text: 'red', deep }] })).error.message).toContain('16 levels');
    const wide = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`f${at}`, at]));
    const documents = Array.from({ length: 1000 }, () => ({ text: 'red', ...wide }));
    // A document has two values more: itself and its text.
    expect((await rank({ documents })).results.length).toBe(1000);
    const wider = documents.map((document) => ({ ...document, ...mapped(wide, (name) => `${name}b`) }));
    expect((await refused({ documents: wider })).error.message).toContain('at most 64000 values');
  });
});

describe('scores', () => {
  it('have their share of the best possible one, below which results are left out', async () => {
    const { results } = await rank({ documents: ['red', 'blue'] });
    const [best, other] = results;
    expect(best!.normalized_score).toBeGreaterThan(other!.normalized_score);
    expect(best!.normalized_score).toBeLessThanOrEqual(1);
    for (const name of ['min_score', 'score_threshold'])
      expect(order(await rank({ documents: ['red', 'blue'], [name]: best!.normalized_score }))).toEqual([0]);
  });
});

describe('models', () => {
  it('are the default one, also if none is named, and an unknown one is told the names', async () => {
    expect((await rank({ documents: ['red'] })).model).toBe('default');
    expect((await rank({ documents: ['red'], model: 'words' })).model).toBe('words');
    expect((await refused({ model: 'rerank-v3.5' })).error.message).toBe(
      'model: there is no such model; the names are default, words',
    );
  });
});

describe('addresses and shapes', () => {
  it.each(['/rerank', '/v1/rerank', '/v2/rerank'])('%s takes both shapes', async (url) => {
    expect(order(await rank({ documents: ['blue', 'red'] }, url))).toEqual([1, 0]);
    const texts = await send({ query: 'red', texts: ['blue', 'red', ''], return_text: true }, url);
    const body = texts.json<{ index: number; score: number; text: string }[]>();
    expect(body.map(({ index, text }) => [index, text])).toEqual([
      [1, 'red'],
      [0, 'blue'],
      [2, ''],
    ]);
    const raw = (await send({ query: 'red', texts: ['red'], raw_scores: true, truncate: true }, url)).json<
      { index: number; score: number }[]
    >();
    const [scored] = (await rank({ documents: ['red'] })).results;
    expect(raw).toEqual([{ index: 0, score: scored!.relevance_score }]);
    expect(body[0]!.score).toBe(scored!.normalized_score);
  });

  it('need a key, and say in each form of an error what is wrong', async () => {
    for (const url of ['/rerank', '/v1/rerank', '/v2/rerank']) {
      const answer = await http.inject({
        method: 'POST',
        url,
        payload: { query: 'q', documents: ['d'] },
        headers: { authorization: 'Bearer qkv_live_wrong' },
      });
      expect(answer.statusCode).toBe(401);
      const { error, detail, message } = answer.json<
        { error: { message: string } } & Record<string, string>
      >();
      expect([detail, message]).toEqual([error.message, error.message]);
    }
    const { error, detail, error_type: type } = await refused({ documents: undefined, texts: [7] });
    expect(detail).toBe(error.message);
    expect(error.issues[0]).toMatchObject({ path: 'texts.0' });
    expect(type).toBe('Validation');
    const score = await http.inject({ method: 'POST', url: '/v1/score', payload: {} });
    expect(Object.keys(score.json<object>())).toEqual(['error']);
  });

  it('leave `/v1/score` its 50 documents, and refuse what it refused', async () => {
    const documents = Array.from({ length: 51 }, (_, at) => ({ doc_id: String(at), text: 'red' }));
    const score = (payload: object) => http.inject({ method: 'POST', url: '/v1/score', payload });
    expect((await score({ query: 'red', documents })).json()).toMatchObject({
      error: { issues: [{ path: 'documents' }] },
    });
    const long = [{ doc_id: 'a', text: 'x'.repeat(102_401) }];
    expect((await score({ query: 'red', documents: long })).statusCode).toBe(422);
  });
});
