/** The statuses of proto/encoder.proto, for a client that breaks the protocol. */
import { type ClientDuplexStream, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  type AnswerItem,
  EncoderClient,
  type EncodeDocumentsRequest,
  type EncodeDocumentsResponse,
  type EncodeQueriesResponse,
  type EncodeQueryRequest,
  requestBounds,
  retryDelayTrailer,
} from '../../../src/encoder/protocol/wire.ts';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import { encodeAll, type Encoders, encodersOfTest, startEncoders } from '../../support/encoder/encoders.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';

type Stream = ClientDuplexStream<EncodeDocumentsRequest, EncodeDocumentsResponse>;
const model = { name: 'colbert-tiny', version: '1' };
const chunking = { maxTokens: 20, overlapTokens: 4, minimumChunkTokens: 2 };
const open = {
  model,
  tenantId: 't',
  chunking,
  documentCount: 1,
  grouped: false,
  documentTokensMax: 0,
  tokensMax: 0,
};
const document = { text: 'the late interaction', more: [] };
const query = { model, tenantId: 't', text: 'x', located: false };

function connect(address: string) {
  const rpc = new EncoderClient(address, credentials.createInsecure());
  return {
    close: () => rpc.close(),
    documents: (options: object = {}) => rpc.encodeDocuments(options),
    countTokens: async (request: object): Promise<unknown> =>
      new Promise((resolve, reject) => {
        rpc.countTokens(request, (error, response) => (error === null ? resolve(response) : reject(error)));
      }),
    query: async (asked: EncodeQueryRequest): Promise<AnswerItem> => {
      const stream = rpc.encodeQueries();
      stream.write({ items: [{ number: 1, query: asked, timeoutMs: hangMs }] });
      const [response] = (await once(stream, 'data')) as [EncodeQueriesResponse];
      stream.end();
      return response.items[0]!;
    },
  };
}

/** Sends the messages and returns the outcome of the call. */
async function ended(
  stream: Stream,
  messages: readonly EncodeDocumentsRequest[],
): Promise<ServiceError | 'ended'> {
  const end = new Promise<ServiceError | 'ended'>((resolve) => {
    stream.on('error', (error: ServiceError) => resolve(error));
    stream.on('end', () => setImmediate(resolve, 'ended'));
  });
  stream.on('data', () => undefined);
  for (const message of messages) stream.write(message);
  stream.end();
  return end;
}

describe('the encoder', () => {
  let encoders: Encoders;
  let client: ReturnType<typeof connect>;
  beforeAll(async () => {
    encoders = await startEncoders();
    client = connect(encoders.supervisor.addresses[0]!);
  });
  afterAll(async () => {
    client.close();
    await encoders.close();
  });

  it('serves a stream that keeps to the order', async () => {
    expect(await ended(client.documents(), [{ open }, { document }, { proceed: {} }])).toBe('ended');
  });

  it('answers several documents of a message in few messages to a client that takes them', async () => {
    const stream = client.documents();
    stream.write({ open: { ...open, documentCount: 20, grouped: true } });
    stream.write({ document: { text: 'late', more: Array.from({ length: 19 }, () => 'late') } });
    stream.end({ proceed: {} });
    const sizes: number[] = [];
    for await (const { parts } of stream as AsyncIterable<EncodeDocumentsResponse>) sizes.push(parts.length);
    expect(sizes.reduce((sum, parts) => sum + parts)).toBe(20);
    expect(sizes.length).toBeLessThan(20);
  });

  it.each<[string, EncodeDocumentsRequest[]]>([
    ['nothing', []],
    ['a document before open', [{ document }]],
    ['fewer documents than announced', [{ open: { ...open, documentCount: 2 } }, { document }]],
    ['proceed in place of a document', [{ open }, { proceed: {} }]],
    ['another document in place of proceed', [{ open }, { document }, { document }]],
    ['more documents than announced', [{ open }, { document: { text: 'late', more: ['late'] } }]],
    ['no proceed', [{ open }, { document }]],
    ['no documents', [{ open: { ...open, documentCount: 0 } }]],
    ['too many documents', [{ open: { ...open, documentCount: requestBounds.documents + 1 } }]],
    ['no model', [{ open: { ...open, model: null } }]],
    ['no chunking', [{ open: { ...open, chunking: null } }]],
    ['windows longer than the model', [{ open: { ...open, chunking: { ...chunking, maxTokens: 22 } } }]],
    [
      'a document beyond its bound',
      [{ open }, { document: { text: 'x'.repeat(requestBounds.documentBytes + 1), more: [] } }],
    ],
    ['an endless tenant id', [{ open: { ...open, tenantId: 't'.repeat(10_000) } }]],
  ])('answers INVALID_ARGUMENT to %s', async (_, messages) => {
    expect(await ended(client.documents(), messages)).toMatchObject({ code: status.INVALID_ARGUMENT });
  });

  it('answers INVALID_ARGUMENT to more texts than it counts the tokens of', async () => {
    const texts = Array.from({ length: requestBounds.documents + 1 }, () => 'x');
    await expect(client.countTokens({ texts, tenantId: 't', model })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    });
  });

  it.each([
    { name: 'colbert-tiny', version: '2' },
    { name: 'other', version: '1' },
  ])('answers FAILED_PRECONDITION to model $name version $version', async (other) => {
    const refused = { code: status.FAILED_PRECONDITION };
    expect(await client.query({ ...query, model: other })).toMatchObject({
      failure: { status: refused.code },
    });
    await expect(client.countTokens({ texts: ['x'], model: other })).rejects.toMatchObject(refused);
    expect(await ended(client.documents(), [{ open: { ...open, model: other } }])).toMatchObject(refused);
  });

  it('answers DEADLINE_EXCEEDED when the deadline passes', async () => {
    const options = { deadline: Date.now() + 30 };
    const texts = Array.from({ length: 200 }, (): EncodeDocumentsRequest => ({
      document: { text: 'late '.repeat(2000), more: [] },
    }));
    const stream = client.documents(options);
    const messages = [{ open: { ...open, documentCount: 200 } }, ...texts, { proceed: {} }];
    expect(await ended(stream, messages)).toMatchObject({ code: status.DEADLINE_EXCEEDED });
  });

  it('keeps no place in its queue past the deadline for a client that reads nothing', async () => {
    const probe = new EncoderProbe(encoders.supervisor.addresses[0]!);
    onTestFinished(() => probe.close());
    const { expired } = (await probe.statistics(hangMs))!;
    const metadata = new Metadata();
    // The client does nothing at this deadline, like a stopped process. Only the encoder acts on it.
    metadata.set('grpc-timeout', '8S');
    const stream = client.documents(metadata);
    onTestFinished(() => stream.cancel());
    stream.on('error', () => undefined);
    stream.on('readable', () => undefined);
    stream.write({ open: { ...open, documentCount: 60 } });
    for (let i = 0; i < 60; i++) stream.write({ document: { text: 'late '.repeat(20_000), more: [] } });
    stream.write({ proceed: {} });
    await eventually(async () => (await probe.statistics(hangMs))!.queuedTokens > 0);
    await eventually(async () => (await probe.statistics(hangMs))!.queuedRequests === 0);
    expect(await probe.statistics(hangMs)).toMatchObject({ queuedTokens: 0, expired: expired + 1 });
  });

  it('runs no further than a reader that does not read, and goes on when it does', async () => {
    const probe = new EncoderProbe(encoders.supervisor.addresses[0]!);
    onTestFinished(() => probe.close());
    const texts = Array.from({ length: 60 }, (): EncodeDocumentsRequest => ({
      document: { text: 'late '.repeat(20_000), more: [] },
    }));
    const before = (await probe.statistics(hangMs))!.tokens;
    const stream = client.documents();
    stream.on('error', () => undefined);
    // The client asks for messages and takes none. So the buffers fill, and flow control stops the encoder.
    stream.on('readable', () => undefined);
    for (const message of [{ open: { ...open, documentCount: 60 } }, ...texts, { proceed: {} }])
      stream.write(message);
    stream.end();
    const run = async (): Promise<number> => (await probe.statistics(hangMs))!.tokens - before;
    let last = -1;
    // The encoder has stopped when two checks in a row see the same count.
    await eventually(async () => {
      const now = await run();
      const stopped = now > 0 && now === last;
      last = now;
      if (!stopped) await pause(200);
      return stopped;
    });
    expect(last).toBeLessThan(600_000);
    stream.removeAllListeners('readable');
    let documents = 0;
    for await (const message of stream as AsyncIterable<EncodeDocumentsResponse>) {
      if (message.part?.last === true) documents++;
    }
    expect(documents).toBe(60);
    expect(await run()).toBeGreaterThan(1_200_000);
  });

  it('goes on serving others after all that', async () => {
    await expect(encodeAll(encoders.pool, ['the late interaction'])).resolves.toHaveLength(1);
  });

  it('tells how long to wait with RESOURCE_EXHAUSTED', async () => {
    const small = await encodersOfTest({ extraArguments: ['--queue-requests-max', '1'] });
    const connected = connect(small.supervisor.addresses[0]!);
    onTestFinished(() => connected.close());
    const holding = connected.documents();
    const counted = new Promise((resolve) => {
      holding.on('data', resolve);
    });
    holding.on('error', () => undefined);
    holding.write({ open });
    holding.write({ document });
    await counted;
    const refused = (await ended(connected.documents(), [{ open }])) as ServiceError;
    expect(refused).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect(Number(refused.metadata.get(retryDelayTrailer)[0])).toBeGreaterThanOrEqual(1);
    const { failure } = await connected.query(query);
    expect(failure).toMatchObject({ status: status.RESOURCE_EXHAUSTED });
    expect(failure?.retryDelayMs).toBeGreaterThanOrEqual(1);
    holding.cancel();
    await eventually(async () => (await connected.query(query)).failure === undefined);
  });
});
