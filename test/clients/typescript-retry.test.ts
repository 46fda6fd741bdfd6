/** The TypeScript client retries when the service refuses, breaks off or stays silent. A double takes the place of the service. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  ApiError,
  ConnectionError,
  type Document,
  Maxsimd,
  type RequestError,
} from '../../clients/typescript/src/index.ts';
import { repeatDelayMs, upsertDeadlineMs } from '../../clients/typescript/src/retry.ts';
import { parseConfig } from '../../src/app/config.ts';
import { ApiDouble, errorReply, type Reply } from '../support/http/api-double.ts';

let double: ApiDouble;
let url: string;
let waits: number[];
beforeEach(async () => {
  double = new ApiDouble();
  url = await double.listen();
  waits = [];
});
afterEach(() => double.close());

const connect = (options: object = {}): Maxsimd =>
  new Maxsimd({ url, apiKey: 'qkv_live_x', onRetry: (_error, delayMs) => waits.push(delayMs), ...options });
const index = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
const documents = (count: number): readonly Document[] =>
  Array.from({ length: count }, (_, at) => ({ doc_id: `d${at}`, text: 't' }));

/** The first requests get these answers. */
function answerFirst(...replies: ReturnType<ApiDouble['intercept']>[]): void {
  double.intercept = () => replies.shift();
}

describe('safe requests', () => {
  test('are sent again after 503, no sooner than Retry-After', async () => {
    answerFirst(errorReply(503, 'service_unavailable', { retryAfter: 1 }));
    expect(await connect().search(index, { query: 'q' })).toMatchObject({ results: [] });
    expect(double.requests).toHaveLength(2);
    expect(double.requests[1]!.atMs - double.requests[0]!.atMs).toBeGreaterThanOrEqual(990);
  });

  test('are sent again after a cut connection', async () => {
    answerFirst({ cut: true });
    expect(await connect().usage()).toMatchObject({ remaining: {} });
    expect(double.requests).toHaveLength(2);
  });

  test('are given up when the next wait would pass the bound', async () => {
    double.intercept = () => errorReply(503, 'service_unavailable', { retryAfter: 3600 });
    await expect(connect().usage()).rejects.toMatchObject({ status: 503, retryAfterSeconds: 3600 });
    expect(double.requests).toHaveLength(1);
  });

  test('of an import are tried once more at the bound, because other batches make room', async () => {
    answerFirst(errorReply(503, 'service_unavailable', { retryAfter: 3600 }));
    const report = await connect({ retryMsMax: 300 }).import(index, [{ doc_id: 'a', text: 't' }]);
    expect(report).toMatchObject({ documents: 1, failed: [] });
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeLessThanOrEqual(300);
  });

  test('are never sent again once the monthly allowance is used up, or when the request is wrong', async () => {
    double.intercept = () => errorReply(429, 'usage_limit_exceeded', { retryAfter: 1 });
    await expect(connect().search(index, { query: 'q' })).rejects.toMatchObject({
      code: 'usage_limit_exceeded',
    });
    double.intercept = () => errorReply(422, 'validation_error');
    await expect(connect().search(index, { query: 'q' })).rejects.toMatchObject({ code: 'validation_error' });
    expect(double.requests).toHaveLength(2);
  });
});

describe('an attempt of an import that comes to nothing after more than half of its time', () => {
  const timeoutMs = 3_000;
  const lateMs = 1_600;
  const slow = async (status: number): Promise<Reply> => {
    await new Promise((resolve) => setTimeout(resolve, lateMs));
    return errorReply(status, 'service_unavailable');
  };
  const sizes = (): readonly number[] => double.upserts().map(({ body }) => body.documents.length);

  test.each([408, 503, 504])('is sent again in parts (%i), and not as it was', async (status) => {
    double.intercept = ({ body }) => (body.documents.length > 3 ? slow(status) : undefined);
    const report = await connect({ timeoutMs }).import(index, documents(8));
    expect(report).toMatchObject({ documents: 8, failed: [] });
    expect(sizes()).toEqual([8, 4, 2, 2, 2, 2]);
  });

  test('counts also if no answer came, by the time limit of the client', async () => {
    double.intercept = ({ body }) => (body.documents.length > 4 ? new Promise(() => {}) : undefined);
    const report = await connect({ timeoutMs }).import(index, documents(8));
    expect(report).toMatchObject({ documents: 8, failed: [] });
    expect(sizes()).toEqual([8, 4, 4]);
  });

  test('is not one that was answered sooner: the same documents are sent again', async () => {
    answerFirst(errorReply(503, 'service_unavailable'), errorReply(408, 'validation_error'));
    await connect().import(index, documents(8));
    expect(sizes()).toEqual([8, 8, 8]);
  });

  test('ends an import that may make one attempt alone', async () => {
    double.intercept = () => slow(503);
    const running = connect({ timeoutMs, retryMsMax: 0 }).import(index, documents(8));
    await expect(running).rejects.toMatchObject({ name: 'ImportError', cause: { status: 503 } });
    expect(sizes()).toEqual([8]);
  });
});

test('half of an upsert is half of the deadline that the service has by default', () => {
  expect(parseConfig({}).MAXSIMD_TIMEOUT_UPSERT_MS).toBe(upsertDeadlineMs);
});

test('creating an index that may exist is safe', async () => {
  answerFirst({ cut: true }, errorReply(504, 'service_unavailable'));
  const made = connect().createIndex({ name: 'one', if_exists: 'return' });
  expect(await made).toMatchObject({ name: 'one' });
  expect(double.requests).toHaveLength(3);
});

describe('an index that is given by its name', () => {
  test('is looked up once for a whole import or list, so another that takes the name meanwhile is left alone', async () => {
    double.addIndex('a/b', index);
    const client = connect();
    const report = await client.import('name:a/b', documents(120), { concurrency: 3 });
    expect(report).toMatchObject({ documents: 120, failed: [] });
    const paths = double.requests.map(({ method, path }) => `${method} ${path}`);
    const upsert = `POST /v1/indexes/${index}/documents`;
    expect(paths).toEqual(['GET /v1/indexes/name%3Aa%2Fb', upsert, upsert, upsert]);
    double.intercept = ({ path }) =>
      path.includes('/documents')
        ? { body: { data: [], next_cursor: path.includes('cursor=') ? null : 'c' } }
        : undefined;
    for await (const document of client.listDocuments('name:a/b')) expect(document).toBeUndefined();
    expect(double.requests.slice(4).map(({ path }) => path.split('?')[0])).toEqual([
      '/v1/indexes/name%3Aa%2Fb',
      `/v1/indexes/${index}/documents`,
      `/v1/indexes/${index}/documents`,
    ]);
  });

  test('ends an import with its report if there is none', async () => {
    const failed = connect().import('name:nowhere', documents(1));
    await expect(failed).rejects.toMatchObject({ name: 'ImportError', cause: { code: 'not_found' } });
    expect(double.upserts()).toEqual([]);
  });

  test('is renamed once, because its old name is gone then', async () => {
    double.intercept = () => errorReply(500, 'internal_error');
    await expect(connect().renameIndex('name:old', 'new')).rejects.toMatchObject({ status: 500 });
    expect(double.requests).toHaveLength(1);
  });
});

describe('a request that is not safe to repeat', () => {
  test('is sent again after 503 where it can be done only once', async () => {
    answerFirst(errorReply(503, 'service_unavailable', { retryAfter: 1 }));
    expect(await connect().createIndex({ name: 'one' })).toMatchObject({ name: 'one' });
    expect(waits[0]).toBeGreaterThanOrEqual(1000);
    double.intercept = () => errorReply(503, 'service_unavailable', { retryAfter: 1 });
    await expect(connect().deleteIndex(index)).rejects.toMatchObject({ status: 503 });
    expect(double.requests).toHaveLength(3);
  });

  test.each([
    ['500', errorReply(500, 'internal_error')],
    ['a cut connection', { cut: true } as const],
  ])('is sent once: %s', async (_name, reply) => {
    double.intercept = () => reply;
    await expect(connect().createIndex({ name: 'one' })).rejects.toBeInstanceOf(Error);
    await expect(connect().deleteIndex(index)).rejects.toBeInstanceOf(Error);
    expect(double.requests).toHaveLength(2);
  });

  test('is sent again when it was refused for its rate', async () => {
    answerFirst(errorReply(429, 'rate_limit_exceeded', { retryAfter: 1 }));
    expect(await connect().createIndex({ name: 'one' })).toMatchObject({ name: 'one' });
    expect(double.requests).toHaveLength(2);
    expect(waits[0]).toBeGreaterThanOrEqual(1000);
  });
});

test('one request that is asked to wait makes the others wait too', async () => {
  answerFirst(errorReply(429, 'rate_limit_exceeded', { retryAfter: 1 }));
  const client = connect();
  const first = client.usage();
  while (waits.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await Promise.all([first, client.usage(), client.usage()]);
  expect(waits).toHaveLength(1);
  for (const request of double.requests.slice(1))
    expect(request.atMs - double.requests[0]!.atMs).toBeGreaterThanOrEqual(990);
});

test('a silent service ends in a timeout, a missing one in a connection error', async () => {
  double.intercept = () => new Promise(() => {});
  await expect(connect({ timeoutMs: 50, retryMsMax: 0 }).usage()).rejects.toMatchObject({
    name: 'ConnectionError',
    code: 'timeout',
    maybeReceived: true,
  });
  const nobody = new ApiDouble();
  const address = await nobody.listen();
  await nobody.close();
  const refused = connect({ url: address, retryMsMax: 0 }).createIndex({ name: 'one' });
  await expect(refused).rejects.toMatchObject({ code: 'connection_failed', maybeReceived: false });
});

test('answers that are not of the service are errors, also a redirect', async () => {
  for (const [reply, status] of [
    [{ body: '<html>' }, 200],
    [{ status: 404, body: '<html>' }, 404],
    [{ status: 307, headers: { location: 'http://127.0.0.1:1/' }, body: '' }, 307],
  ] as const) {
    double.intercept = () => reply;
    await expect(connect().usage()).rejects.toMatchObject({ status, code: 'unexpected_response' });
  }
});

test('names itself, and keeps its key to printable characters', async () => {
  const agents: (string | null)[] = [];
  const client = connect({
    userAgent: 'shop/2',
    fetch: (address: string, init: RequestInit) => {
      agents.push(new Headers(init.headers).get('user-agent'));
      return fetch(address, init);
    },
  });
  await client.usage();
  expect(agents).toEqual([expect.stringMatching(/^shop\/2 maxsimd-typescript\/\S+ node\/\d+/)]);
  expect(() => connect({ apiKey: 'secret\nsecret' })).toThrow(/^(?!.*secret)/);
  expect(() => connect({ url: 'ftp://host' })).toThrow('http');
});

test('an error says each thing that is wrong once: the message of the API is that of the first', () => {
  const issues = [
    { path: 'query', message: 'must not be empty', code: 'too_small' },
    { path: 'topk', message: 'unknown property', code: 'unrecognized_keys' },
  ];
  const details = {
    status: 422,
    code: 'validation_error',
    requestId: 'r',
    retryAfterSeconds: undefined,
  } as const;
  expect(new ApiError('query: must not be empty', { ...details, issues }).message).toBe(
    '422 validation_error: query: must not be empty; topk: unknown property (request r)',
  );
});

test('delays grow, stay bounded, and never pass under Retry-After', () => {
  const details = { issues: [], requestId: undefined } as const;
  const failure = (status: number, retryAfterSeconds?: number): ApiError =>
    new ApiError('m', { ...details, status, code: 'unexpected_response', retryAfterSeconds });
  const lost = new ConnectionError('m', { code: 'timeout', maybeReceived: true, cause: undefined });
  const delay = (error: RequestError, attempts: number, random: number, isSafe = true): number | undefined =>
    repeatDelayMs(error, { attempts, broken: attempts, isSafe }, () => random);
  expect([1, 2, 3, 20].map((attempts) => delay(lost, attempts, 1))).toEqual([600, 1100, 2100, 30_100]);
  expect([delay(failure(503, 7), 1, 0), delay(failure(503, 7), 1, 1)]).toEqual([7000, 7500]);
  expect([delay(failure(429, 7), 1, 0), delay(failure(429, 7), 1, 1)]).toEqual([7000, 8000]);
  expect([delay(failure(500), 2, 0), delay(failure(500), 3, 0)]).toEqual([100, undefined]);
  for (const status of [302, 401, 403, 422]) expect(delay(failure(status), 1, 0)).toBeUndefined();
  expect(delay(lost, 1, 0, false)).toBeUndefined();
});

describe('a client that waits for limits', () => {
  const limit = errorReply(429, 'concurrency_limit_exceeded', { retryAfter: 1 });

  test('waits beyond the bound, which begins anew after each', async () => {
    const broken = errorReply(500, 'internal_error');
    answerFirst(broken, broken, limit, broken, broken);
    expect(await connect({ waitsForLimits: true }).usage()).toMatchObject({ remaining: {} });
    answerFirst(limit);
    expect(await connect({ waitsForLimits: true, retryMsMax: 0 }).usage()).toMatchObject({ remaining: {} });
    answerFirst(limit);
    await expect(connect({ retryMsMax: 0 }).usage()).rejects.toMatchObject({ status: 429 });
  });
});

test('an answer comes with its request id and latency, and by the parser that was given', async () => {
  const answers: object[] = [];
  const client = connect({ parse: (json: string) => ({ length: json.length }) });
  expect(await client.usage({ onAnswer: (answer) => answers.push(answer) })).toEqual({
    length: expect.any(Number),
  });
  expect(answers).toEqual([{ requestId: 'request-1', latencyMs: expect.any(Number) }]);
});
