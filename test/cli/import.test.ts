/** `maxsimd import` as a process, against a service that refuses, breaks, and hangs on demand. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ImportDocument } from '../../clients/typescript/src/import/import.ts';
import { errorReply, type ApiDouble } from '../support/http/api-double.ts';
import { run, runJson } from '../support/commands/command-process.ts';
import type { RunOptions } from '../support/commands/command-here.ts';
import { isUpsert, rows, startImportStage, stateFilesIn, writeInput } from './import/import-stage.ts';

let api: ApiDouble;
let directory: string;
let stateHome: string;
let options: RunOptions;

beforeEach(async () => {
  ({ api, directory, stateHome, options } = await startImportStage());
});

afterEach(() => api.close());

const input = (objects: readonly (object | string)[], name?: string): string =>
  writeInput(directory, objects, name);

const importFile = (file: string, ...more: string[]): ReturnType<typeof runJson> =>
  runJson(['import', file, '--index', 'books', ...more], options);

describe('an import', () => {
  it('makes the index, sends every document once and ends with the counts', async () => {
    const { exitCode, document, stderr } = await importFile(input(rows(120)));
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    expect(document).toMatchObject({ index: 'books', index_created: true, done: 120, failed: 0, resumed: 0 });
    expect(api.documents.size).toBe(120);
    // Several batches are on the way at a time.
    const sizes = api.upserts().map((request) => request.body.documents.length);
    expect(sizes.toSorted((a, b) => b - a)).toEqual([50, 50, 20]);
    expect(api.requests.every((request) => request.authorization === 'Bearer qkv_live_test')).toBe(true);
  });

  it('makes the index with the model that is asked for, and refuses one that has another', async () => {
    const file = input(rows(1));
    await importFile(file, '--model', 'second/2');
    const made = api.requests.find(({ method, path: route }) => method === 'POST' && route === '/v1/indexes');
    expect(made?.body).toEqual({ name: 'books', model: 'second', model_version: '2', if_exists: 'return' });
    for (const model of ['words', 'words/1'])
      expect((await importFile(file, '--model', model)).exitCode).toBe(0);
    const { exitCode, document } = await importFile(file, '--model', 'words/2');
    expect(exitCode).toBe(2);
    expect(document.error.message).toBe(
      'the index "books" has the model words/1, which never changes: import into another index for words/2',
    );
  });

  it('puts identifiers into a match field, and counts those that do not fit', async () => {
    const file = input([
      { id: 'a', title: 'Read_me', text: 'see E11.65, and E11.65' },
      { id: 'b', text: 'plain words' },
      { id: 'c', text: 'E12', metadata: { note: 'x'.repeat(16_362) } },
      { id: 'd', text: 'E13', codes: 'mine' },
    ]);
    const { document, stderr } = await importFile(file, '--identifiers', 'codes');
    expect(stderr).toBe(
      `${file}:4: document d: the row has a field "codes" of its own: --identifiers needs another name\n`,
    );
    expect(document).toMatchObject({ done: 3, failed: 1, identifiers: 2, identifiers_left_out: 1 });
    const made = api.requests.find(({ method, path: route }) => method === 'POST' && route === '/v1/indexes');
    expect(made?.body).toEqual({ name: 'books', match_fields: ['codes'], if_exists: 'return' });
    const metadata = api
      .upserts()
      .flatMap(({ body }) => (body.documents as readonly ImportDocument[]).map((sent) => sent.metadata));
    expect(metadata[0]).toEqual({ title: 'Read_me', codes: ['Read_me', 'E11.65'] });
    expect(metadata.slice(1).map((sent) => Object.keys(sent ?? {}))).toEqual([[], ['note']]);
    api.addIndex('shelves', '00000000-0000-4000-8000-0000000000aa');
    const again = await run(['import', file, '--index', 'shelves', '--identifiers', 'codes'], options);
    expect(again.stdout).toMatch(
      /^identifiers +2 in 1 documents; 1 left out, because metadata have at most 16 KiB$/m,
    );
    expect(again.stderr).toContain(
      'run maxsimd index update "shelves" --match-fields codes, and import again',
    );
  });

  it('uses an index that is there', async () => {
    api.addIndex('books', '00000000-0000-4000-8000-0000000000aa');
    const { document } = await importFile(input(rows(1)));
    expect(document).toMatchObject({
      index_id: '00000000-0000-4000-8000-0000000000aa',
      index_created: false,
    });
    expect(
      api.requests.filter((request) => request.method === 'POST' && request.path === '/v1/indexes'),
    ).toEqual([]);
  });

  it('prints a table for people, nothing but it on standard output', async () => {
    const file = input(rows(3));
    const { stdout, stderr, exitCode } = await run(['import', file, '--index', 'books'], options);
    expect(exitCode).toBe(0);
    expect(stderr).toBe(`source    ${file}, 3 rows\nid        id\ntext      text\nmetadata  none\n\n`);
    expect(stdout).toMatch(/^index +books \(.*\), created\ndone +3\nfailed +0\ntime +[\d.]+ s\n$/);
  });

  it('can be given again: it sends everything again, because nothing is left over of a finished one', async () => {
    const file = input(rows(60));
    await importFile(file);
    const { document } = await importFile(file);
    expect(document).toMatchObject({ done: 60, resumed: 0 });
    expect(api.upserts()).toHaveLength(4);
    expect(stateFilesIn(stateHome)).toEqual([]);
  });
});

describe('text that the model does not know', () => {
  /** Documents 10 and up are unknown: wholly where `n` is even, or else by a half. */
  function countUnknown(): void {
    api.unknownTokensOf = (docId) => {
      const n = Number(docId.slice(1));
      return n < 10 ? 0 : n % 2 === 0 ? 10 : 5;
    };
  }

  it('is reported as its share of all tokens, with the documents that hold most of it', async () => {
    countUnknown();
    const file = input(rows(20));
    const { exitCode, document } = await importFile(file);
    expect(exitCode).toBe(0);
    expect(document.unknown_tokens).toEqual({
      tokens: 75,
      share: 75 / 200,
      documents: 10,
      worst: ['d10', 'd12', 'd14', 'd16', 'd18'].map((doc_id) => ({ doc_id, share: 1 })),
    });
    const { stdout } = await run(['import', file, '--index', 'books'], options);
    expect(stdout).toMatch(
      /^unknown +37\.5 % of the tokens stand for text that the model does not know, in 10 documents \(d10 100\.0 %, .*, \.\.\.\)$/m,
    );
  });

  it('is not mentioned where there is none, or where the service does not count it', async () => {
    const file = input(rows(20));
    const { document } = await importFile(file);
    expect(document.unknown_tokens).toMatchObject({ tokens: 0, documents: 0 });
    const { stdout } = await run(['import', file, '--index', 'books'], options);
    expect(stdout).not.toContain('unknown');
  });

  it('is counted over the whole input, whatever part of it was sent before', async () => {
    countUnknown();
    api.documentsMax = 120;
    const file = input(rows(200));
    const stopped = await importFile(file, '--concurrency', '1');
    expect(stopped.document).toMatchObject({ done: 100, unknown_tokens: { documents: 90 } });
    api.documentsMax = 1000;
    const { document } = await importFile(file);
    expect(document).toMatchObject({ resumed: 100, unknown_tokens: { documents: 190, tokens: 1425 } });
    expect(document.unknown_tokens.share).toBeCloseTo(1425 / 2000);
  });
});

describe('what cannot be imported', () => {
  it('is counted and reported by line, and the exit code is 1', async () => {
    const file = input([
      { id: 'good', text: 'fine' },
      '{"id": "cut off, conf',
      { text: 'nameless' },
      { id: 'big', text: 'x'.repeat(100 * 1024 + 1) },
      { id: 'void', text: 'no tokens' },
      { id: 'also good', text: 'fine' },
    ]);
    const { exitCode, document, stderr } = await importFile(file);
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ done: 2, failed: 4 });
    expect(document.failures).toEqual([
      { file, line: 2, doc_id: null, error: 'not valid JSON' },
      { file, line: 3, doc_id: null, error: 'no doc_id, _id or id' },
      {
        file,
        line: 4,
        doc_id: 'big',
        error: 'the text has 102401 bytes, 102400 are allowed: --cut makes several documents of it',
      },
      { file, line: 5, doc_id: 'void', error: 'document produced no chunks' },
    ]);
    expect(stderr).toContain(`${file}:5: document void: document produced no chunks\n`);
    expect(stderr).not.toContain('conf');
  });
});

describe('a service that asks to wait', () => {
  it('gets as many requests at once as the tenant may, no more', async () => {
    api.maxConcurrentRequests = 3;
    let release = (): void => {};
    const three = new Promise<void>((resolve) => (release = resolve));
    api.intercept = async (request) => {
      if (!isUpsert(request)) return undefined;
      if (api.upserts().length === 3) release();
      await three;
      return undefined;
    };
    await importFile(input(rows(1000)));
    expect(api.inFlightMax).toBe(3);
  });
});

describe('an import that must stop', () => {
  it.each([
    [429, 'usage_limit_exceeded', 1000],
    [401, 'authentication_failed', undefined],
    [403, 'tenant_suspended', undefined],
    [404, 'not_found', undefined],
  ] as const)(
    'on %i %s tells why, counts what is settled, and goes on from there',
    async (status, code, retryAfter) => {
      api.intercept = (request) =>
        isUpsert(request) && api.upserts().length > 2
          ? errorReply(status, code, retryAfter === undefined ? {} : { retryAfter })
          : undefined;
      const file = input(rows(200));
      const stopped = await importFile(file, '--concurrency', '1');
      expect(stopped.exitCode).toBe(1);
      expect(stopped.document).toMatchObject({ done: 100, failed: 0, error: { code } });
      expect(stopped.stderr).toMatch(
        new RegExp(`^maxsimd: ${status} ${code}: .*\\(request request-\\d+\\)\n$`),
      );

      api.intercept = () => undefined;
      const resumed = await importFile(file, '--concurrency', '1');
      expect(resumed.exitCode).toBe(0);
      expect(resumed.document).toMatchObject({ done: 200, failed: 0, resumed: 100 });
      expect(api.documents.size).toBe(200);
      // Three before the stop (the third refused), two after: nothing settled was sent again.
      expect(api.upserts()).toHaveLength(5);
    },
  );

  it('ends when the service stays away longer than it was asked to wait', async () => {
    api.intercept = (request) => (isUpsert(request) ? { cut: true } : undefined);
    const { exitCode, document } = await importFile(input(rows(5)), '--retry-for', '0.5');
    expect(exitCode).toBe(1);
    expect(document).toMatchObject({ done: 0, failed: 0, error: { code: 'connection_failed' } });
  });

  it('ends when an answer does not come in time', async () => {
    api.intercept = (request) => (isUpsert(request) ? new Promise(() => {}) : undefined);
    const { document } = await importFile(input(rows(5)), '--retry-for', '0.1', '--timeout', '0.3');
    expect(document.error).toMatchObject({
      code: 'timeout',
      message: expect.stringMatching(/no answer .* within 0.3 s/),
    });
  });
});

describe('a rate limit', () => {
  it('that holds an import up is named once, with what to do', async () => {
    let refusals = 0;
    api.intercept = (request) => {
      if (!isUpsert(request) || refusals === 2) return undefined;
      refusals += 1;
      return errorReply(429, 'rate_limit_exceeded', { retryAfter: 1 });
    };
    const { document, stderr } = await importFile(input(rows(100)), '--concurrency', '1');
    expect(document).toMatchObject({ done: 100, failed: 0 });
    const hints = stderr.split('\n').filter((line) => line.includes('60 requests a minute'));
    expect(hints).toHaveLength(1);
    expect(hints[0]).toMatch(/: npx maxsimd tenant limits 'it'\\''s acme' --requests-per-minute 6000$/);
  });
});
