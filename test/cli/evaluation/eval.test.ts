/** `maxsimd eval` and `maxsimd search` as processes, against scripted rankings. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiDouble, errorReply } from '../../support/http/api-double.ts';
import { runJsonHere } from '../../support/commands/command-process.ts';
import { runHere, type RunOptions } from '../../support/commands/command-here.ts';

let api: ApiDouble;
let directory: string;
let options: RunOptions;

beforeEach(async () => {
  api = new ApiDouble();
  api.addIndex('books', '00000000-0000-4000-8000-0000000000aa');
  directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-eval-'));
  options = { environment: { MAXSIMD_URL: await api.listen(), MAXSIMD_API_KEY: 'qkv_live_test' } };
});

afterEach(async () => {
  await api.close();
  rmSync(directory, { recursive: true });
});

interface Query {
  readonly id: string;
  readonly text: string;
}

function beir(queries: readonly Query[], qrels: string, layout: 'ours' | 'original' = 'ours'): void {
  const text = queries.map((query) => JSON.stringify(query)).join('\n');
  if (layout === 'ours') {
    writeFileSync(path.join(directory, 'queries.jsonl'), text);
    writeFileSync(path.join(directory, 'qrels.tsv'), qrels);
  } else {
    writeFileSync(path.join(directory, 'queries.jsonl.gz'), gzipSync(text.replaceAll('"id"', '"_id"')));
    mkdirSync(path.join(directory, 'qrels'));
    writeFileSync(path.join(directory, 'qrels/test.tsv'), qrels);
  }
}

const header = 'query-id\tcorpus-id\tscore\n';
const evaluate = (...more: string[]): ReturnType<typeof runJsonHere> =>
  runJsonHere(['eval', directory, '--index', 'books', ...more], options);

describe('eval', () => {
  it.each(['ours', 'original'] as const)(
    'computes nDCG@10 and recall@100 of graded judgements, %s layout',
    async (layout) => {
      beir(
        [
          { id: '1', text: 'first' },
          { id: '2', text: 'second' },
        ],
        `${header}1\ta\t2\n1\tb\t1\n1\tz\t0\n2\tc\t1\n`,
        layout,
      );
      api.rankings.set('first', ['b', 'x', 'a']);
      api.rankings.set('second', ['y', 'c']);
      const { exitCode, document, stderr } = await evaluate();
      expect(stderr).toBe('');
      expect(exitCode).toBe(0);
      const first = (1 + 2 / 2) / (2 + 1 / Math.log2(3));
      expect(document.ndcg_at_10).toBeCloseTo((first + 1 / Math.log2(3)) / 2, 12);
      expect(document.recall_at_100).toBe(1);
      expect(document).toMatchObject({ queries: 2, top_k: 100, candidate_k: 500, concurrency: 1 });
      for (const name of ['mean', 'p50', 'p90', 'p95', 'p99', 'max']) {
        expect(document.latency_ms[name]).toBeGreaterThan(0);
      }
    },
  );

  it('asks for 100 results of 500 candidates', async () => {
    beir([{ id: '1', text: 'first' }], `${header}1\ta\t1\n`);
    await evaluate();
    expect(api.requests.at(-1)?.body).toEqual({ query: 'first', top_k: 100, candidate_k: 500 });
  });

  it('counts a document once, at its best chunk', async () => {
    beir([{ id: '1', text: 'first' }], `${header}1\tb\t1\n`);
    api.rankings.set('first', ['a', 'a', 'a', 'b', 'b']);
    const { document } = await evaluate();
    expect(document.ndcg_at_10).toBeCloseTo(1 / Math.log2(3), 12);
    expect(document.documents_per_query).toEqual({ mean: 2, min: 2 });
  });

  it("leaves a query's own document out of its ranking, and counts it", async () => {
    beir([{ id: 'q', text: 'first' }], `${header}q\ta\t1\n`);
    api.rankings.set('first', ['q', 'a']);
    const { document } = await evaluate();
    expect(document).toMatchObject({ ndcg_at_10: 1, own_documents_left_out: 1 });
    const { stdout } = await runHere(['eval', directory, '--index', 'books'], options);
    expect(stdout).toMatch(/^left out +1 documents with the id of their query, not judged$/m);
  });

  it('keeps a document with the id of a query if it is judged', async () => {
    beir([{ id: '1', text: 'first' }], '1\t1\t1\n');
    api.rankings.set('first', ['1', '2']);
    const { document } = await evaluate();
    expect(document).toMatchObject({ ndcg_at_10: 1, own_documents_left_out: 0 });
  });

  it('counts a refused query as 0, lists it, and goes on', async () => {
    beir(
      [
        { id: '1', text: 'first' },
        { id: 'blank', text: '' },
      ],
      `${header}1\ta\t1\nblank\ta\t1\n`,
    );
    api.rankings.set('first', ['a']);
    api.intercept = ({ body }) => {
      const issues = [{ path: 'query', message: 'must not be empty', code: 'too_small' }];
      return body?.query === '' ? errorReply(422, 'validation_error', { issues }) : undefined;
    };
    const { exitCode, document } = await evaluate();
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({
      queries: 2,
      queries_refused: [{ query_id: 'blank', error: 'must not be empty' }],
      ndcg_at_10: 0.5,
      recall_at_100: 0.5,
    });
    const { stdout } = await runHere(['eval', directory, '--index', 'books'], options);
    expect(stdout).toMatch(/^refused +1 queries, which count 0: blank \(must not be empty\)$/m);
  });

  it('says why every query was refused', async () => {
    beir([{ id: '1', text: '' }], '1\ta\t1\n');
    api.intercept = ({ path: route }) => {
      const issues = [{ path: 'query', message: 'must not be empty', code: 'too_small' }];
      return route.endsWith('/search') ? errorReply(422, 'validation_error', { issues }) : undefined;
    };
    const { exitCode, document } = await evaluate();
    expect(exitCode).toBe(1);
    expect(document.error.message).toBe('every query was refused; query 1: must not be empty');
  });

  it('reads the judgements of the split that is asked for, or of a file', async () => {
    beir([{ id: '1', text: 'first' }], '1\tx\t1\n', 'original');
    api.rankings.set('first', ['a', 'x']);
    const file = path.join(directory, 'qrels/dev.tsv');
    writeFileSync(file, '1\ta\t1\n');
    expect((await evaluate()).document.judgements).toEqual([path.join(directory, 'qrels/test.tsv')]);
    expect((await evaluate('--split', 'dev')).document).toMatchObject({ judgements: [file], ndcg_at_10: 1 });
    expect((await evaluate('--qrels', file)).document).toMatchObject({ judgements: [file], ndcg_at_10: 1 });
    expect((await evaluate('--qrels', file, '--split', 'dev')).exitCode).toBe(2);
    rmSync(path.join(directory, 'qrels/test.tsv'));
    expect((await evaluate()).document).toMatchObject({ judgements: [file], ndcg_at_10: 1 });
    const { document } = await evaluate('--split', 'train');
    expect(document.error.message).toMatch(/holds neither qrels\/train\.tsv nor qrels\/train\.jsonl$/);
  });

  it('runs queries with judgements only, and says which judged ones are missing', async () => {
    beir(
      [
        { id: '1', text: 'first' },
        { id: 'unjudged', text: 'second' },
      ],
      `${header}1\ta\t1\ngone\ta\t1\n`,
    );
    const { document } = await evaluate();
    expect(document).toMatchObject({ queries: 1, judged_queries_missing: 1 });
    expect(api.requests.filter((request) => request.path.endsWith('/search'))).toHaveLength(1);
  });

  it('says before it starts that a low rate limit will hold it up, and what to do', async () => {
    const queries = Array.from({ length: 7 }, (_, id) => ({ id: String(id), text: `query ${id}` }));
    beir(queries, header + queries.map(({ id }) => `${id}\ta\t1\n`).join(''));
    expect((await evaluate()).stderr).toBe('');
    api.requestsPerMinute = 3;
    const { stderr, exitCode } = await evaluate();
    expect(exitCode).toBe(0);
    expect(stderr).toBe(
      'maxsimd: the tenant may send 3 requests a minute, so this waits: 7 take about 3 minutes. To raise the limit, run this on ' +
        `the service's machine: npx maxsimd tenant limits 'it'\\''s acme' --requests-per-minute 6000\n`,
    );
  });

  it('leaves the wait for a limit out of the latency', async () => {
    beir([{ id: '1', text: 'first' }], `${header}1\ta\t1\n`);
    let refused = false;
    api.intercept = (request) => {
      if (!request.path.endsWith('/search') || refused) return undefined;
      refused = true;
      return errorReply(429, 'rate_limit_exceeded', { retryAfter: 1 });
    };
    const { document } = await evaluate();
    expect(document.seconds).toBeGreaterThanOrEqual(1);
    // On a slow machine the search alone may take long; the wait comes on top of it. A timer may be a little early.
    expect(document.latency_ms.max).toBeLessThan(document.seconds * 1000 - 990);
  });

  it('gives the same figures whatever runs in parallel', async () => {
    const queries = Array.from({ length: 60 }, (_, id) => ({ id: String(id), text: `query ${id}` }));
    beir(queries, header + queries.map(({ id }) => `${id}\tt${id}\t${1 + (Number(id) % 3)}\n`).join(''));
    for (const { id, text } of queries) {
      const others = Array.from({ length: Number(id) % 13 }, (_, position) => `x${position}`);
      api.rankings.set(text, [...others, `t${id}`]);
    }
    const alone = await evaluate();
    const together = await evaluate('--concurrency', '8');
    expect(together.document.ndcg_at_10).toBe(alone.document.ndcg_at_10);
    expect(together.document.recall_at_100).toBe(alone.document.recall_at_100);
  });

  it('prints a table for people that says when fewer than 100 documents came back', async () => {
    beir([{ id: '1', text: 'first' }], `${header}1\ta\t1\n`);
    api.rankings.set('first', ['a']);
    const { stdout } = await runHere(['eval', directory, '--index', 'books'], options);
    expect(stdout).toMatch(/^nDCG@10 +1\.0000$/m);
    expect(stdout).toMatch(/^recall@100 +1\.0000$/m);
    expect(stdout).toMatch(/^latency +mean [\d.]+, p50 /m);
    expect(stdout).toMatch(/at most 100 chunks/);
  });

  it('reads queries and judgements of a dataset of MTEB', async () => {
    api.rankings.set('first', ['d1']);
    api.rankings.set('second', ['d1', 'd2']);
    const dataset = path.resolve(import.meta.dirname, '../../fixtures/mteb');
    const { document } = await runJsonHere(['eval', dataset, '--index', 'books'], options);
    expect(document).toMatchObject({
      judgements: [path.join(dataset, 'qrels/test-00000-of-00001.parquet')],
      queries: 2,
      ndcg_at_10: (1 + 1 / Math.log2(3)) / 2,
    });
    const dev = await runJsonHere(['eval', dataset, '--index', 'books', '--split', 'dev'], options);
    expect(dev.document).toMatchObject({ queries: 1, ndcg_at_10: 0 });
  });

  it('names its own option if a dataset has several subsets that may be the judgements', async () => {
    for (const subset of ['corpus', 'queries', 'relevance']) {
      mkdirSync(path.join(directory, subset));
      writeFileSync(path.join(directory, subset, 'test.jsonl'), '{"_id":"a","text":"a"}');
    }
    const { stderr } = await runHere(['eval', directory, '--index', 'books'], options);
    expect(stderr).toMatch(/has the subsets .*: name the file of judgements with --qrels FILE\n/);
  });

  it('takes query_id for the id of a query', async () => {
    beir([], 'q\ta\t1\n');
    writeFileSync(path.join(directory, 'queries.jsonl'), '{"query_id":"q","text":"first"}\n');
    api.rankings.set('first', ['a']);
    expect((await evaluate()).document.ndcg_at_10).toBe(1);
  });

  it.each([
    [
      'a directory without judgements',
      (): void => rmSync(path.join(directory, 'qrels.tsv')),
      /holds neither qrels/,
    ],
    [
      'a judgement that is no number',
      (): void => writeFileSync(path.join(directory, 'qrels.tsv'), `${header}1\ta\tx\n`),
      /qrels\.tsv:2: the grade is not a number/,
    ],
    [
      'judgements of other queries only',
      (): void => writeFileSync(path.join(directory, 'qrels.tsv'), `${header}9\ta\t1\n`),
      /no query has judgements/,
    ],
    [
      'a query that appears twice',
      (): void => writeFileSync(path.join(directory, 'queries.jsonl'), '{"id":"1","text":"a"}\n'.repeat(2)),
      /queries\.jsonl:2: query 1 appears twice/,
    ],
  ])('refuses %s', async (_, damage, message) => {
    beir([{ id: '1', text: 'first' }], `${header}1\ta\t1\n`);
    damage();
    const { exitCode, document } = await evaluate();
    expect(exitCode).toBe(1);
    expect(document.error).toEqual({ code: 'input_error', message: expect.stringMatching(message) });
  });
});

describe('search', () => {
  it('prints the answer of the API with --json', async () => {
    api.rankings.set('first', ['a', 'b']);
    const { exitCode, document } = await runJsonHere(
      [
        'search',
        'first',
        '--index',
        'books',
        '--top-k',
        '2',
        '--candidate-k',
        '9',
        '--filter',
        '{"n":1}',
        '--components',
      ],
      options,
    );
    expect(exitCode).toBe(0);
    expect(document.results.map((result: { doc_id: string }) => result.doc_id)).toEqual(['a', 'b']);
    expect(document.results[0].components).toEqual({ maxsim: 1 });
    expect(api.requests.at(-1)?.body).toEqual({
      query: 'first',
      top_k: 2,
      candidate_k: 9,
      filter: { n: 1 },
      return_components: true,
    });
  });

  it('prints a table for people', async () => {
    api.rankings.set('first', ['a']);
    const { stdout } = await runHere(['search', 'first', '--index', 'books'], options);
    expect(stdout).toMatch(
      /^rank +score +doc_id +chunk +chunk_id +metadata\n +1 +10\.0000 +a +0 +c0 +\{"n":0\}\n/,
    );
  });

  it('of an index that is not there says so', async () => {
    const { exitCode, document, stderr } = await runJsonHere(['search', 'x', '--index', 'nowhere'], options);
    expect(exitCode).toBe(1);
    expect(document.error.code).toBe('not_found');
    expect(stderr).toMatch(/^maxsimd: there is no index "nowhere" at http:/);
  });

  it('passes the failure of the API on, with its code and request id', async () => {
    api.intercept = (request) => {
      const issues = [{ path: 'query', message: 'too long', code: 'too_big' }];
      return request.path.endsWith('/search') ? errorReply(422, 'validation_error', { issues }) : undefined;
    };
    const { exitCode, document } = await runJsonHere(['search', 'x', '--index', 'books'], options);
    expect(exitCode).toBe(1);
    expect(document.error.code).toBe('validation_error');
    expect(document.error.message).toMatch(/422 validation_error: .*query: too long.*request-\d+/);
  });

  it('of something that is no maxsimd says so', async () => {
    api.intercept = () => ({ body: '<html>' });
    const { document } = await runJsonHere(['search', 'x', '--index', 'books'], options);
    expect(document.error.code).toBe('unexpected_response');
  });
});
