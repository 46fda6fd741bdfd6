import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError, errorTable } from '../../src/errors.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { ErrorBody } from '../../src/http/schemas/errors.ts';
import { startHttp } from '../support/http/http-server.ts';
import type { Harness } from '../support/http/http-server.ts';
import { authorization } from '../support/http/watched-service.ts';

let http: Harness;
let indexId: string;

beforeAll(async () => {
  http = await startHttp();
  indexId = await http.createIndex();
});
afterAll(() => http[Symbol.asyncDispose]());
beforeEach(() => {
  http.service.admitFailure = undefined;
  http.service.countFailure = undefined;
  http.service.before = () => {};
  http.service.counted.length = 0;
});

const codes = Object.keys(errorTable) as ErrorCode[];

describe('a failure of the service', () => {
  test.each(codes)('%s: its status, the error body and x-request-id', async (code) => {
    http.service.before = () => {
      throw new ServiceError(code, 'why', { retryAfterSeconds: 7 });
    };
    const response = await http.inject({ url: '/v1/usage' });
    expect(response.statusCode).toBe(errorTable[code].httpStatus);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['x-request-id']).toBeTruthy();
    expect(ErrorBody.parse(response.json()).error.code).toBe(code);
    if ([429, 503].includes(response.statusCode)) expect(response.headers['retry-after']).toBe('7');
  });

  test('a 429 always carries Retry-After', async () => {
    for (const code of codes.filter((row) => errorTable[row].httpStatus === 429)) {
      http.service.admitFailure = new ServiceError(code, 'too many');
      const response = await http.inject({ url: '/v1/usage' });
      expect(response.statusCode).toBe(429);
      expect(response.headers['retry-after']).toBe('1');
    }
  });

  test('issues are passed on', async () => {
    const issues = [{ path: 'name', message: 'taken', code: 'duplicate' }];
    http.service.before = () => {
      throw new ServiceError('validation_error', 'taken', { issues });
    };
    const response = await http.inject({ method: 'POST', url: '/v1/indexes', payload: { name: 'n' } });
    expect(response.json()).toEqual({ error: { code: 'validation_error', message: 'taken', issues } });
  });

  test('an unexpected one is an internal_error that tells nothing', async () => {
    const secrets = [
      new Error('secret at /etc/x'),
      new TypeError('secret'),
      'secret',
      undefined,
      { statusCode: 404 },
    ];
    for (const thrown of [...secrets, new ServiceError('internal_error', 'secret table is broken')]) {
      http.service.before = () => {
        throw thrown;
      };
      const response = await http.inject({ url: '/v1/usage' });
      expect(response.statusCode).toBe(500);
      expect(response.body).not.toContain('secret');
      expect(ErrorBody.parse(response.json()).error.code).toBe('internal_error');
    }
    expect(http.logText()).not.toContain('secret at');
  });

  test.each(['EIO', 'EROFS', 'EMFILE', 'ENFILE', 'ENOSPC', 'EDQUOT', 'ENOMEM', 'ENOLCK'])(
    'what the machine did (%s) is a 503 with Retry-After, and logged with its cause',
    async (code) => {
      http.service.before = () => {
        throw Object.assign(new Error(`${code}: in the way`), { code });
      };
      const response = await http.inject({ url: '/v1/usage' });
      http.service.before = () => {};
      expect(response.statusCode).toBe(503);
      expect(response.headers['retry-after']).toMatch(/^[1-9]\d*$/);
      expect(ErrorBody.parse(response.json()).error.code).toBe('service_unavailable');
      expect(http.logLines).toContainEqual(
        expect.objectContaining({
          err: expect.objectContaining({ cause: expect.objectContaining({ code }) }),
        }),
      );
    },
  );

  test('an answer that cannot be written is an internal_error', async () => {
    http.service.ranked = {
      results: [
        {
          docId: 'a',
          chunkId: 'c',
          chunkIndex: 0,
          score: Number.NaN,
          normalizedScore: 0,
          metadata: '{}',
        },
      ],
      usage: { inputTokens: 0, documentCount: 0, chunkCount: 0, candidateCount: 0, latencyMs: 0 },
    };
    const payload = { query: 'q' };
    const response = await http.inject({ method: 'POST', url: `/v1/indexes/${indexId}/search`, payload });
    http.service.ranked = undefined;
    expect(response.statusCode).toBe(500);
    expect(ErrorBody.parse(response.json()).error.code).toBe('internal_error');
  });
});

describe('order of checks', () => {
  const wrong = { method: 'POST', url: '/v1/indexes/no-uuid/search', payload: '{nonsense' } as const;

  test('an unknown address under /v1 or /v2 wants a key first, elsewhere it does not; bodies do not matter', async () => {
    for (const url of ['/v1', '/v1/', '/v1/nothing', '/v1/indexes/a/b/c', '/v2/indexes']) {
      expect((await http.app.inject({ url })).statusCode).toBe(401);
      const response = await http.inject({ ...wrong, url });
      expect([url, response.statusCode, response.json().error.code]).toEqual([url, 404, 'not_found']);
    }
    for (const url of ['/index.html', '/v3/indexes', '/favicon.ico', '/v1x']) {
      const response = await http.app.inject({ url });
      expect([url, response.statusCode, response.json().error.code]).toEqual([url, 404, 'not_found']);
      expect(response.headers['x-request-id']).toBeTruthy();
    }
  });

  test('the authorization header is passed on as it came', async () => {
    for (const value of [undefined, '', 'Bearer', 'Basic x', `${authorization} `, 'Bearer wrong']) {
      const headers = value === undefined ? {} : { authorization: value };
      const response = await http.app.inject({ url: '/v1/usage', headers });
      if (value === `${authorization} `) continue;
      expect([value, response.statusCode]).toEqual([value, 401]);
      expect(response.headers['www-authenticate']).toBe('Bearer');
    }
  });
});

describe('accounting', () => {
  test('every answered /v1 request is counted once, 401 and 429 excepted', async () => {
    const count = async (status: number, counted: number, request: Parameters<Harness['inject']>[0]) => {
      http.service.counted.length = 0;
      const response = await http.inject(request);
      expect([request.url, response.statusCode, http.service.counted.length]).toEqual([
        request.url,
        status,
        counted,
      ]);
    };
    await count(200, 1, { url: '/v1/usage' });
    await count(404, 1, { url: '/v1/unknown' });
    await count(422, 1, { url: '/v1/indexes/x' });
    await count(422, 1, { method: 'POST', url: '/v1/score', payload: '{' });
    await count(413, 1, { method: 'POST', url: '/v1/score', payload: 'x'.repeat(6_000_000) });
    await count(415, 1, {
      method: 'POST',
      url: '/v1/score',
      payload: 'x',
      headers: { 'content-type': 'a/b' },
    });
    await count(401, 0, { url: '/v1/usage', headers: { authorization: 'Bearer x' } });
    http.service.before = () => {
      throw new ServiceError('usage_limit_exceeded', 'none left', { retryAfterSeconds: 9 });
    };
    await count(429, 0, {
      method: 'POST',
      url: '/v1/score',
      payload: { query: 'q', documents: [{ doc_id: 'a', text: 't' }] },
    });
    http.service.before = () => {
      throw new Error('x');
    };
    await count(500, 1, { url: '/v1/usage' });
    await count(200, 0, { url: '/healthz' });
    await count(404, 0, { url: '/unknown' });
  });

  test('a ledger that fails costs nobody an answer', async () => {
    http.service.countFailure = new Error('disk');
    expect((await http.inject({ url: '/v1/usage' })).statusCode).toBe(200);
  });
});

describe('whatever is sent', () => {
  const expectContract = (response: Awaited<ReturnType<Harness['inject']>>) => {
    expect(response.statusCode).not.toBe(500);
    expect(response.headers['x-request-id']).toBeTruthy();
    if (response.statusCode >= 300) ErrorBody.parse(response.json());
  };

  test('as JSON is answered in the contract’s shape and never with a 500', async () => {
    const names = [
      'query',
      'documents',
      'doc_id',
      'text',
      'metadata',
      'top_k',
      'candidate_k',
      'filter',
      'return_components',
      'name',
      'chunking',
      'metadata_schema',
      '__proto__',
    ];
    const key = fc.oneof(fc.constantFrom(...names), fc.string());
    const { node } = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue(),
        fc.constantFrom(1, 'q', {}, []),
        fc.array(tie('node'), { maxLength: 3 }),
        tie('object'),
      ),
      object: fc
        .array(fc.tuple(key, tie('node')), { maxLength: 5 })
        .map((entries) => Object.fromEntries(entries) as unknown),
    }));
    const route = fc.constantFrom(
      '/v1/indexes',
      '/v1/score',
      `/v1/indexes/${indexId}/documents`,
      `/v1/indexes/${indexId}/search`,
    );
    await fc.assert(
      fc.asyncProperty(route, node, async (url, body) => {
        expectContract(await http.inject({ method: 'POST', url, payload: JSON.stringify(body) }));
      }),
      { numRuns: 1000 },
    );
  });

  test('as bytes is answered in the contract’s shape and never with a 500', async () => {
    const route = fc.constantFrom('/v1/indexes', '/v1/score', `/v1/indexes/${indexId}/documents`);
    await fc.assert(
      fc.asyncProperty(route, fc.uint8Array({ maxLength: 64 }), async (url, bytes) => {
        const headers = { 'content-type': 'application/json' };
        expectContract(await http.inject({ method: 'POST', url, headers, payload: Buffer.from(bytes) }));
      }),
      { numRuns: 300 },
    );
  });

  test('as a doc_id in a path arrives as it was, or is refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', minLength: 1, maxLength: 255 }), async (docId) => {
        fc.pre(docId !== '.' && docId !== '..');
        const url = `/v1/indexes/${indexId}/documents/${encodeURIComponent(docId)}`;
        expect((await http.inject({ url })).statusCode).toBe(404);
        expect(http.service.calls.at(-1)?.arguments[1]).toBe(docId);
      }),
      { numRuns: 500 },
    );
  });
});
