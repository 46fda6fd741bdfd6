/** The pool with real encoder processes: the outcomes for callers when encoders die, hang or refuse, and when callers leave. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createEncoderPool } from '../../../src/encoder/client/pool.ts';
import { EncoderProbe } from '../../../src/encoder/supervision/encoder-probe.ts';
import type { GetStatisticsResponse } from '../../../src/encoder/protocol/wire.ts';
import { ServiceError } from '../../../src/errors.ts';
import {
  callOptions,
  encodeAll,
  type Encoders,
  encodersOfTest,
  startEncoders,
} from '../../support/encoder/encoders.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';
import { defaultModel } from '../../support/encoder/models.ts';

const unavailable = expect.objectContaining({ code: 'service_unavailable' }) as unknown;
const longText = 'the late interaction of token vectors in every document '.repeat(400);
const chunking = { maxTokens: 20, overlapTokens: 4, minimumChunkTokens: 2 };

/** The outcome of a call: `answered`, or the code of its `ServiceError`. */
async function outcome<T>(work: Promise<T>): Promise<string> {
  try {
    await work;
    return 'answered';
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

describe('an encoder that is killed under load', () => {
  it('is waited for by calls that come while it restarts', async () => {
    const { pool, supervisor } = await encodersOfTest({}, { healWaitMs: 10_000 });
    process.kill(supervisor.processIds()[0]!, 'SIGKILL');
    await expect(pool.encodeQuery('the', callOptions(pool))).resolves.toMatchObject({ inputTokens: 1 });
  });

  it('never gives a document twice when the rest goes to another encoder', async () => {
    const { pool, supervisor } = await encodersOfTest({ processes: 2 }, { healWaitMs: 100_000 });
    const texts = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? longText : 'the short text'));
    const seen: number[] = [];
    let reported = 0;
    const documents = pool.encodeDocuments(texts, {
      ...callOptions(pool, { deadlineMs: Date.now() + 150_000 }),
      chunking,
      onTokenCounts: (counts) => {
        reported++;
        expect(counts).toHaveLength(texts.length);
      },
    });
    for await (const { documentIndex, inputTokens } of documents) {
      seen.push(documentIndex);
      expect(inputTokens).toBe(documentIndex % 3 === 0 ? 3600 : 10);
      if (seen.length === 5) for (const id of supervisor.processIds()) process.kill(id, 'SIGKILL');
    }
    expect(seen.toSorted((a, b) => a - b)).toEqual(texts.map((_, i) => i));
    expect(reported).toBe(1);
  });
});

describe('an encoder that hangs', () => {
  it('is ejected, its calls go elsewhere, and the supervisor replaces it', async () => {
    const { pool, supervisor, events } = await encodersOfTest(
      { processes: 2, hangMs: 3000 },
      { healthIntervalMs: 100, healthTimeoutMs: 300 },
    );
    await eventually(() => events.filter(({ event }) => event === 'admitted').length === 2);
    const [victim] = supervisor.processIds();
    process.kill(victim!, 'SIGSTOP');
    const calls = Array.from({ length: 20 }, async () => pool.encodeQuery('the', callOptions(pool)));
    await expect(Promise.all(calls)).resolves.toHaveLength(20);
    expect(events).toContainEqual(
      expect.objectContaining({ event: 'ejected', reason: expect.stringContaining('health') }),
    );
    await eventually(
      () => supervisor.processIds().length === 2 && !supervisor.processIds().includes(victim!),
    );
    await eventually(() => events.filter(({ event }) => event === 'admitted').length === 3);
  });

  it('that continues is readmitted', async () => {
    const { pool, supervisor, events } = await encodersOfTest(
      {},
      { healthIntervalMs: 50, healthTimeoutMs: 200, healWaitMs: 300 },
    );
    const [process_] = supervisor.processIds();
    process.kill(process_!, 'SIGSTOP');
    await eventually(() => events.some(({ event }) => event === 'ejected'));
    await expect(pool.encodeQuery('the', callOptions(pool))).rejects.toEqual(unavailable);
    process.kill(process_!, 'SIGCONT');
    await eventually(() => pool.ready());
    await expect(pool.encodeQuery('the', callOptions(pool))).resolves.toBeDefined();
    expect(supervisor.processIds()).toEqual([process_]);
  });
});

/** Forwards connections to a socket until they are cut. Then nothing comes through, and neither end notices. */
async function wireTo(address: string) {
  const connections = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(address.slice('unix:'.length));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      connections.add(from);
      from.on('error', () => to.destroy());
      from.on('data', (bytes: Buffer) => to.write(bytes));
      from.on('end', () => to.end());
    }
  });
  onTestFinished(() => {
    server.close();
    for (const connection of connections) connection.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const cutOff = (): void => {
    for (const connection of connections) connection.removeAllListeners('data').pause();
  };
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, cutOff };
}

describe('a connection that dies silently', () => {
  it('is given up for a new one', async () => {
    const { supervisor } = await encodersOfTest();
    const wire = await wireTo(supervisor.addresses[0]!);
    const pool = createEncoderPool({
      addresses: [wire.address],
      healthIntervalMs: 100,
      healthTimeoutMs: 300,
    });
    onTestFinished(async () => pool.close());
    await eventually(() => pool.ready());
    await expect(pool.encodeQuery('the', callOptions(pool))).resolves.toBeDefined();
    const limits = callOptions(pool);
    wire.cutOff();
    await eventually(() => !pool.ready());
    await eventually(() => pool.ready());
    await expect(pool.encodeQuery('the', limits)).resolves.toBeDefined();
  });
});

describe('documents', () => {
  it('are encoded beside queries that never stop', async () => {
    const { pool } = await encodersOfTest({ modelDirectories: [defaultModel] });
    const query =
      'how does an encoder share one thread between the queries and the documents that it is given';
    const load = { running: true, answered: 0 };
    const querying = Array.from({ length: 96 }, async () => {
      while (load.running) {
        await pool.encodeQuery(query, callOptions(pool));
        load.answered++;
      }
    });
    try {
      await eventually(() => load.answered > 100);
      await expect(encodeAll(pool, ['the late interaction'])).resolves.toHaveLength(1);
    } finally {
      load.running = false;
      await Promise.all(querying);
    }
  });
});

describe('a caller', () => {
  // None of these tests changes the encoder, so one serves them all.
  let encoders: Encoders;
  beforeAll(async () => {
    encoders = await startEncoders();
  });
  afterAll(async () => encoders.close());

  it('that goes away gets its own reason, and its work is dropped', async () => {
    const { pool } = encoders;
    const controller = new AbortController();
    const reason = new Error('the client has gone');
    const work = encodeAll(pool, [longText, longText], {
      signal: controller.signal,
      chunking,
      onTokenCounts: () => controller.abort(reason),
    });
    await expect(work).rejects.toBe(reason);
    const gone = AbortSignal.abort(reason);
    await expect(pool.encodeQuery('the', callOptions(pool, { signal: gone }))).rejects.toBe(reason);
  });

  it('whose allowance is refused gets that refusal, and nothing is run', async () => {
    const { pool } = encoders;
    const refusal = new ServiceError('usage_limit_exceeded', 'used up', { retryAfterSeconds: 5 });
    await expect(
      encodeAll(pool, ['the', 'a'], { onTokenCounts: async () => Promise.reject(refusal) }),
    ).rejects.toBe(refusal);
  });

  it('that stops reading early leaves nothing behind', async () => {
    const { pool, supervisor } = encoders;
    for (let i = 0; i < 50; i++) {
      const documents = pool.encodeDocuments([longText, longText], {
        ...callOptions(pool),
        chunking,
        onTokenCounts: () => undefined,
      });
      for await (const document of documents) {
        expect(document.chunkRows.length).toBeGreaterThan(0);
        break;
      }
    }
    const idle = await statisticsOnceIdle(supervisor.addresses[0]!);
    expect(idle).toMatchObject({ queuedRequests: 0, queuedTokens: 0 });
  });

  it('whose deadline passes is asked to come again', async () => {
    const { pool } = encoders;
    const late = callOptions(pool, { deadlineMs: Date.now() - 1 });
    await expect(pool.encodeQuery('the', late)).rejects.toEqual(unavailable);
    const soon = { deadlineMs: Date.now() + 50 };
    await expect(
      encodeAll(
        pool,
        Array.from({ length: 50 }, () => longText),
        { ...soon, chunking },
      ),
    ).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterSeconds: expect.any(Number) as number,
    });
  });

  it('that asks for another version is refused, never served from the one there is', async () => {
    const { pool } = encoders;
    const version = { model: { name: 'colbert-tiny', version: '2' } };
    const other = callOptions(pool, version);
    await expect(pool.encodeQuery('the', other)).rejects.toEqual(unavailable);
    await expect(encodeAll(pool, ['the'], version)).rejects.toEqual(unavailable);
    await expect(pool.countTokens(['the'], other)).rejects.toEqual(unavailable);
  });

  it('with chunking that the model cannot take is refused with the reason', async () => {
    const { pool } = encoders;
    const tooLong = { maxTokens: 22, overlapTokens: 0, minimumChunkTokens: 0 };
    await expect(encodeAll(pool, ['the'], { chunking: tooLong })).rejects.toMatchObject({
      code: 'validation_error',
    });
  });
});

describe('the queue', () => {
  it('refuses beyond its bound, with a delay, and serves again when it is empty', async () => {
    const { pool } = await encodersOfTest({ extraArguments: ['--queue-requests-max', '2'] });
    const calls = Array.from({ length: 12 }, async () => outcome(encodeAll(pool, [longText], { chunking })));
    const outcomes = await Promise.all(calls);
    expect(outcomes).toContain('answered');
    expect(outcomes).toContain('service_unavailable');
    expect(await outcome(encodeAll(pool, [longText], { chunking }))).toBe('answered');
  });

  it('lets queries overtake a long document request', async () => {
    const { pool } = await encodersOfTest({ threads: 1 });
    const order: string[] = [];
    const documents = encodeAll(
      pool,
      Array.from({ length: 40 }, () => longText),
      {
        chunking,
        onTokenCounts: () => {
          void pool.encodeQuery('the', callOptions(pool)).then(() => order.push('query'));
        },
      },
    ).then(() => order.push('documents'));
    await documents;
    expect(order).toEqual(['query', 'documents']);
  });
});

describe('encoders', () => {
  it('are replaced one by one without a failed request', async () => {
    const { pool, supervisor } = await encodersOfTest({ processes: 2 }, { healWaitMs: 10_000 });
    const before = supervisor.processIds();
    const load = { running: true };
    const outcomes: string[] = [];
    const callers = [1, 2, 3].map(async (caller) => {
      while (load.running) {
        const work =
          caller === 1
            ? encodeAll(pool, ['the late', 'interaction'])
            : pool.encodeQuery('the', callOptions(pool));
        outcomes.push(await outcome<unknown>(work));
      }
    });
    await supervisor.restart();
    load.running = false;
    await Promise.all(callers);
    expect(outcomes.length).toBeGreaterThan(10);
    expect(new Set(outcomes)).toEqual(new Set(['answered']));
    expect(supervisor.processIds().some((id) => before.includes(id))).toBe(false);
  });

  it('count tokens without encoding, special strings as text', async () => {
    const { pool } = await encodersOfTest();
    expect(await pool.countTokens(['the late', '', '[MASK] x'], callOptions(pool))).toEqual([2, 0, 4]);
  });

  it('that are none answer service_unavailable within the time a call waits', async () => {
    const { pool } = await encodersOfTest({}, { healWaitMs: 100 });
    await pool.close();
    expect(pool.ready()).toBe(false);
    await expect(pool.encodeQuery('the', callOptions(pool))).rejects.toEqual(unavailable);
  });
});

async function statisticsOnceIdle(address: string): Promise<GetStatisticsResponse | undefined> {
  const probe = new EncoderProbe(address);
  onTestFinished(() => probe.close());
  await eventually(async () => (await probe.statistics(hangMs))?.queuedRequests === 0);
  return probe.statistics(hangMs);
}
