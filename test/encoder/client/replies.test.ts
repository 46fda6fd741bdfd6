/**
 * An encoder that answers nonsense. The only fake among the encoder's tests: a real encoder cannot be made to send wrong
 * sizes or NaN.
 */
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createEncoderPool } from '../../../src/encoder/client/pool.ts';
import type { Encoder } from '../../../src/encoder/protocol/contract.ts';
import type { EndpointEvent } from '../../../src/encoder/client/endpoint.ts';
import { addHealthService } from '../../../src/encoder/protocol/health.ts';
import {
  bytesOf,
  type EncodeDocumentsRequest,
  type EncodeDocumentsResponse,
  encoderService,
  type EncodeQueriesRequest,
  type EncodeQueriesResponse,
  type EncodeQueryResponse,
  type PartMessage,
} from '../../../src/encoder/protocol/wire.ts';
import { callOptions, encodeAll, until } from '../../support/encoder/encoders.ts';

const dim = 4;
const timings = { tokenizeMs: 0, queueMs: 0, runMs: 0 };
const goodQuery: EncodeQueryResponse = {
  inputTokens: 1,
  rows: 2,
  vectors: bytesOf(new Float32Array(2 * dim)),
  offsets: bytesOf(new Float32Array(2)),
  timings,
  problem: '',
};
const goodPart: PartMessage = {
  documentIndex: 0,
  chunkRows: bytesOf(Uint32Array.of(2)),
  vectors: bytesOf(new Int8Array(2 * dim)),
  scales: bytesOf(Uint16Array.of(0x3c00, 0x3c00)),
  last: true,
  timings,
  problem: '',
};

async function poolOn(
  query: EncodeQueryResponse,
  parts: readonly EncodeDocumentsResponse[],
): Promise<{ pool: Encoder; events: EndpointEvent[] }> {
  const server = new Server();
  addHealthService(server)('SERVING');
  const model = { name: 'm', version: '1', dim, windowTokensMax: 8 };
  const answer =
    (response: unknown) => (_: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) => {
      callback(null, response);
    };
  server.addService(encoderService, {
    getInfo: answer({ models: [model], provider: 'cpu' }),
    getStatistics: answer({}),
    countTokens: answer({ tokenCounts: bytesOf(Uint32Array.of(1, 2)) }),
    encodeQueries: (call: ServerDuplexStream<EncodeQueriesRequest, EncodeQueriesResponse>) => {
      call.on('data', ({ number }: EncodeQueriesRequest) => call.write({ number, reply: query }));
    },
    encodeDocuments: (call: ServerDuplexStream<EncodeDocumentsRequest, EncodeDocumentsResponse>) => {
      call.on('data', (message: EncodeDocumentsRequest) => {
        if (message.document !== undefined)
          call.write({ tokenCounts: { tokenCounts: bytesOf(Uint32Array.of(1)) } });
        if (message.proceed === undefined) return;
        for (const part of parts) call.write(part);
        call.end();
      });
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  const events: EndpointEvent[] = [];
  const pool = createEncoderPool({
    addresses: [`127.0.0.1:${port}`],
    onEvent: (event) => events.push(event),
  });
  onTestFinished(async () => {
    await pool.close();
    server.forceShutdown();
  });
  await until(() => pool.ready());
  return { pool, events };
}

const corrupt = expect.objectContaining({ event: 'corrupt_reply' }) as unknown;

describe('a corrupt query reply', () => {
  it('is distinguished from a good one', async () => {
    const { pool } = await poolOn(goodQuery, []);
    await expect(pool.encodeQuery('x', callOptions(pool))).resolves.toMatchObject({ rows: 2 });
  });

  it.each([
    ['has NaN', { vectors: bytesOf(Float32Array.of(0, 0, 0, 0, 0, Number.NaN, 0, 0)) }],
    ['has infinity', { offsets: bytesOf(Float32Array.of(0, Infinity)) }],
    ['has vectors of another dim', { vectors: bytesOf(new Float32Array(2 * 3)) }],
    ['is truncated', { vectors: bytesOf(new Float32Array(2 * dim)).subarray(0, 30) }],
    ['lacks offsets', { offsets: Buffer.alloc(0) }],
    ['has no rows', { rows: 0, vectors: Buffer.alloc(0), offsets: Buffer.alloc(0) }],
  ])('that %s is service_unavailable and reported', async (_, changes) => {
    const { pool, events } = await poolOn({ ...goodQuery, ...changes }, []);
    await expect(pool.encodeQuery('x', callOptions(pool))).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    expect(events).toContainEqual(corrupt);
  });

  it('with the wrong number of token counts is service_unavailable', async () => {
    const { pool } = await poolOn(goodQuery, []);
    await expect(pool.countTokens(['x'], callOptions(pool))).rejects.toMatchObject({
      code: 'service_unavailable',
    });
  });
});

describe('a corrupt document reply', () => {
  it('is distinguished from a good one', async () => {
    const { pool } = await poolOn(goodQuery, [{ part: goodPart }]);
    await expect(encodeAll(pool, ['x'])).resolves.toHaveLength(1);
  });

  it.each<[string, Partial<PartMessage>]>([
    ['has a scale that is no number', { scales: bytesOf(Uint16Array.of(0x3c00, 0x7e00)) }],
    ['has an infinite scale', { scales: bytesOf(Uint16Array.of(0x7c00, 0x3c00)) }],
    ['has a negative scale', { scales: bytesOf(Uint16Array.of(0xbc00, 0x3c00)) }],
    ['has vectors of another dim', { vectors: bytesOf(new Int8Array(2 * 3)) }],
    ['has fewer scales than rows', { scales: bytesOf(Uint16Array.of(0x3c00)) }],
    ['has half a scale', { scales: Buffer.alloc(3) }],
    ['has a chunk without rows', { chunkRows: bytesOf(Uint32Array.of(2, 0)) }],
    ['has an absurd chunk', { chunkRows: bytesOf(Uint32Array.of(0xffffffff)) }],
    ['names an unknown document', { documentIndex: 7 }],
    ['never ends its document', { last: false }],
  ])('that %s is service_unavailable and reported', async (_, changes) => {
    const { pool, events } = await poolOn(goodQuery, [{ part: { ...goodPart, ...changes } }]);
    await expect(encodeAll(pool, ['x'])).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(events).toContainEqual(corrupt);
  });

  it.each<[string, EncodeDocumentsResponse[]]>([
    ['sends nothing', []],
    ['sends a document twice', [{ part: goodPart }, { part: goodPart }]],
    ['sends counts again', [{ tokenCounts: { tokenCounts: Buffer.alloc(4) } }]],
    [
      'has no chunk for a text with tokens',
      [
        {
          part: {
            ...goodPart,
            chunkRows: Buffer.alloc(0),
            vectors: Buffer.alloc(0),
            scales: Buffer.alloc(0),
          },
        },
      ],
    ],
  ])('that %s is service_unavailable', async (_, parts) => {
    const { pool } = await poolOn(goodQuery, parts);
    await expect(encodeAll(pool, ['x'])).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
