/** Queries over one stream that stays open, with real encoders and with peers that break the protocol. */
import { credentials, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createEncoderPool } from '../../../src/encoder/client/pool.ts';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import { addHealthService } from '../../../src/encoder/protocol/health.ts';
import type { QueriesCall } from '../../../src/encoder/server/query-server.ts';
import {
  type AnswerItem,
  EncoderClient,
  type EncodeQueriesResponse,
  encoderService,
  numbersIn,
  type QueryItem,
} from '../../../src/encoder/protocol/wire.ts';
import { callOptions, encodersOfTest } from '../../support/encoder/encoders.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';

const model = { name: 'colbert-tiny', version: '1' };
const query = { model, tenantId: 't', text: 'the late interaction', located: false };

describe('queries on one stream', () => {
  it('each get their own answer', async () => {
    const { pool } = await encodersOfTest();
    const texts = ['the', 'late interaction', 'of token vectors', 'in every document', 'of every token'];
    const alone = [];
    for (const text of texts) alone.push(await pool.encodeQuery(text, callOptions(pool)));
    const together = await Promise.all(
      Array.from({ length: 100 }, (_, i) => pool.encodeQuery(texts[i % 5]!, callOptions(pool))),
    );
    for (const [i, { inputTokens, rows, vectors }] of together.entries()) {
      const expected = alone[i % 5]!;
      expect({ inputTokens, rows }).toEqual({ inputTokens: expected.inputTokens, rows: expected.rows });
      for (const [d, value] of vectors.entries()) expect(value).toBeCloseTo(expected.vectors[d]!, 2);
    }
  });

  it('end at their own deadlines while the encoder says nothing, before it is found to hang', async () => {
    const { pool, supervisor } = await encodersOfTest({}, { healthTimeoutMs: 20_000 });
    const [processId] = supervisor.processIds();
    await pool.encodeQuery('the', callOptions(pool));
    process.kill(processId!, 'SIGSTOP');
    onTestFinished(() => void process.kill(processId!, 'SIGCONT'));
    const soon = callOptions(pool, { deadlineMs: Date.now() + 200 });
    await expect(pool.encodeQuery('the', soon)).rejects.toMatchObject({
      code: 'service_unavailable',
      message: 'the deadline passed while encoding',
    });
    const controller = new AbortController();
    const reason = new Error('gone');
    const work = pool.encodeQuery('the', callOptions(pool, { signal: controller.signal }));
    controller.abort(reason);
    await expect(work).rejects.toBe(reason);
    process.kill(processId!, 'SIGCONT');
    await expect(pool.encodeQuery('the', callOptions(pool))).resolves.toMatchObject({ inputTokens: 1 });
  });

  it('fail together when their stream breaks, and are tried on another encoder', async () => {
    const broken = await peer((call) =>
      call.on('data', () => call.emit('error', { code: status.UNAVAILABLE, details: 'cut' })),
    );
    const { supervisor, pool } = await encodersOfTest();
    const events: string[] = [];
    const both = createEncoderPool({
      addresses: [broken, ...supervisor.addresses],
      onEvent: ({ event, address }) => events.push(`${event} ${address}`),
    });
    onTestFinished(async () => both.close());
    await eventually(() => events.filter((event) => event.startsWith('admitted')).length >= 2);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => both.encodeQuery('the', callOptions(pool))),
    );
    expect(answers.map(({ inputTokens }) => inputTokens)).toEqual(Array.from({ length: 20 }, () => 1));
    expect(events).toContain(`ejected ${broken}`);
  });
});

describe('the encoder’s end of a stream of queries', () => {
  it('answers each query of a client that breaks the protocol, in any order', async () => {
    const { address } = await oneEncoder();
    const { stream, ask, responses, ended } = open(address);
    const timeoutMs = 30_000;
    ask({ number: 7, query, timeoutMs });
    ask({ number: 7, query, timeoutMs });
    ask({ number: 8, cancel: {}, timeoutMs: 0 });
    ask({ number: 9, timeoutMs });
    ask({ number: 10, query, timeoutMs: 0 });
    ask({ number: 11, query: { ...query, model: { ...model, version: '2' } }, timeoutMs });
    ask({ number: 12, query: { ...query, text: 'a'.repeat((1 << 20) + 1) }, timeoutMs });
    stream.end();
    await ended;
    const outcomes = responses.map(({ number, reply, failure }) => [number, failure?.status ?? reply?.rows]);
    expect(outcomes.toSorted(([a], [b]) => a! - b!)).toEqual([
      [7, expect.any(Number)],
      [7, expect.any(Number)],
      [9, status.INVALID_ARGUMENT],
      [10, status.DEADLINE_EXCEEDED],
      [11, status.FAILED_PRECONDITION],
      [12, status.INVALID_ARGUMENT],
    ]);
  });

  it('tells where the rows of a query lie in its text, if it is asked to', async () => {
    const { address } = await oneEncoder();
    const { stream, ask, responses, ended } = open(address);
    const text = '🎈 no way';
    ask({ number: 1, query, timeoutMs: 30_000 });
    ask({ number: 2, query: { ...query, text, located: true }, timeoutMs: 30_000 });
    stream.end();
    await ended;
    const [plain, located] = [1, 2].map((wanted) => responses.find(({ number }) => number === wanted)?.reply);
    expect([plain?.starts.length, plain?.ends.length]).toEqual([0, 0]);
    const [starts, ends] = [located!.starts, located!.ends].map((bytes) => numbersIn(bytes, Uint32Array)!);
    expect([starts!.length, ends!.length]).toEqual([located!.rows, located!.rows]);
    const parts = Array.from(starts!, (start, row) => text.slice(start, ends![row])).filter(
      (part) => part !== '',
    );
    expect(parts.join('')).toBe('🎈noway');
  });

  it('tells to open no more when it drains, answers what is open, and ends', async () => {
    const { address, processId } = await oneEncoder();
    const { stream, ask, responses, ended } = open(address);
    const draining = new Promise<void>((resolve) => {
      stream.on('data', ({ items }: EncodeQueriesResponse) => {
        if (items.some(({ draining: notice }) => notice)) resolve();
      });
    });
    ask({ number: 1, query, timeoutMs: hangMs });
    await eventually(() => responses.length === 1);
    process.kill(processId, 'SIGTERM');
    await draining;
    ask({ number: 2, query, timeoutMs: hangMs });
    stream.end();
    await ended;
    expect(responses.filter(({ reply }) => reply !== undefined).map(({ number }) => number)).toEqual([1, 2]);
  });

  it('keeps nothing of a client that goes away', async () => {
    const { address } = await oneEncoder();
    const { stream, ask, responses } = open(address);
    for (let number = 1; number <= 500; number++) ask({ number, query, timeoutMs: hangMs });
    await eventually(() => responses.length > 0);
    stream.cancel();
    const probe = new EncoderProbe(address);
    onTestFinished(() => probe.close());
    await eventually(async () => (await probe.statistics(hangMs))?.queuedRequests === 0);
    expect(await probe.statistics(hangMs)).toMatchObject({ queuedRequests: 0, queuedTokens: 0 });
  });

  // Five thousand runs of the model take ten seconds on two idle cores and several times that on busy ones.
  it('reads no further from a client that does not read', async () => {
    const { address } = await oneEncoder();
    const { stream, ask, responses } = open(address, false);
    const count = 5000;
    for (let number = 1; number <= count; number++) ask({ number, query, timeoutMs: hangMs });
    const probe = new EncoderProbe(address);
    onTestFinished(() => probe.close());
    // Its answers fill the transport, and then their bound is reached. Further queries stay with the client. After a second
    // without a run it is not just a busy machine.
    await eventually(async () => {
      const before = await probe.statistics(hangMs);
      await pause(1000);
      const after = await probe.statistics(hangMs);
      return before !== undefined && before.batches > 0 && before.batches === after?.batches;
    });
    stream.resume();
    await eventually(() => responses.length === count);
    expect(responses.every(({ reply, failure }) => reply !== undefined || failure !== undefined)).toBe(true);
  });
});

async function oneEncoder(): Promise<{ address: string; processId: number }> {
  const { supervisor } = await encodersOfTest();
  return { address: supervisor.addresses[0]!, processId: supervisor.processIds()[0]! };
}

function open(address: string, reading = true) {
  const client = new EncoderClient(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const stream = client.encodeQueries();
  const responses: AnswerItem[] = [];
  const ask = (item: QueryItem): void => void stream.write({ items: [item] });
  const ended = new Promise<void>((resolve, reject) => {
    stream.on('end', resolve);
    stream.on('error', reject);
  });
  ended.catch(() => undefined);
  stream.on('data', ({ items }: EncodeQueriesResponse) => responses.push(...items));
  if (!reading) stream.pause();
  return { stream, ask, responses, ended };
}

/** A fake encoder, for behaviour that a real one never shows. */
async function peer(onQueries: (call: QueriesCall) => void): Promise<string> {
  const server = new Server();
  addHealthService(server)('SERVING');
  const info = { models: [{ ...model, dim: 16, windowTokensMax: 21 }], provider: 'cpu' };
  server.addService(encoderService, {
    getInfo: (_: unknown, callback: (error: null, response: unknown) => void) => callback(null, info),
    encodeQueries: (call: QueriesCall) => {
      call.on('error', () => undefined);
      onQueries(call);
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}
