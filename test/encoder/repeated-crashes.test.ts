/**
 * Texts that end encoders, again and again, in real encoders: others are served beside them, nobody is refused for them, and
 * the processes that end are few.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createEncoderPool, type EncoderPoolOptions } from '../../src/encoder/client.ts';
import type { Encoder } from '../../src/encoder/contract.ts';
import { ServiceError } from '../../src/errors.ts';
import { callOptions, encodeAll, encodersOfTest, until } from './encoders.ts';
import { servePoisonousModel } from './poisonous-model.ts';

const model = await servePoisonousModel();

const honest = 'the late interaction';
const refused = 'the encoder ends when it runs this text';

async function start(poolOptions: Partial<EncoderPoolOptions> = {}) {
  const options = { healWaitMs: 20_000, ...poolOptions };
  const encoders = await encodersOfTest({ modelDirectories: [model.directory] }, options);
  const count = (name: string): number => encoders.events.filter(({ event }) => event === name).length;
  return { ...encoders, count, ends: () => count('admitted') - 1 };
}

type Outcome = 'answered' | 'refused' | ServiceError;

/** A query with the deadline of a search. */
async function ask(pool: Encoder, text: string, tenantId: string): Promise<Outcome> {
  try {
    const deadlineMs = Date.now() + 10_000;
    const named = { model: 'colbert-tiny', modelVersion: '1', tenantId, deadlineMs };
    const { problem } = await pool.encodeQuery(text, callOptions(pool, named));
    return problem === undefined ? 'answered' : 'refused';
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

/** Asks one query after the other until `stop`, which gives what became of them. */
function askOn(pool: Encoder, textOf: (n: number) => string, tenantId: string) {
  const outcomes: Outcome[] = [];
  const load = { running: true };
  const ended = (async () => {
    for (let n = 0; load.running; n++) {
      const outcome = await ask(pool, textOf(n), tenantId);
      outcomes.push(outcome);
      // A client that is told to wait does; what is refused from memory never leaves the event loop.
      await pause(typeof outcome === 'string' ? 0 : 100);
    }
  })();
  return {
    outcomes,
    stop: async () => {
      load.running = false;
      await ended;
    },
  };
}

describe('a query that ends encoders', () => {
  it('is asked for on and on, ends four of them at most, and costs others nothing afterwards', async () => {
    const { pool, count, ends } = await start();
    const poison = askOn(pool, () => `${model.words.crashing} the`, 'poisoner');
    const innocents = [1, 2, 3].map((n) => askOn(pool, () => honest, `innocent ${n}`));
    await until(() => count('fatal_query') === 1, 30_000);
    const answeredBefore = innocents.map(({ outcomes }) => outcomes.length);
    const refusedBefore = poison.outcomes.length;
    await until(() => poison.outcomes.length > refusedBefore + 500);
    await until(() => innocents.every(({ outcomes }, i) => outcomes.length > answeredBefore[i]! + 50));
    await Promise.all([poison, ...innocents].map(async ({ stop }) => stop()));
    expect(new Set(poison.outcomes.slice(refusedBefore))).toEqual(new Set(['refused']));
    for (const [i, { outcomes }] of innocents.entries()) {
      expect(outcomes).not.toContain('refused');
      expect(new Set(outcomes.slice(answeredBefore[i]! + 1))).toEqual(new Set(['answered']));
    }
    expect(ends()).toBeLessThanOrEqual(4);
    expect(count('fatal_query')).toBe(1);
  }, 60_000);

  it('is another one each time: its tenant has to wait, others are answered, none is refused', async () => {
    const { pool, ends } = await start({ tenantEndsMax: 3 });
    const words = ['the', 'late', 'interaction', 'of', 'token', 'vectors', 'every', 'document'];
    const poison = askOn(
      pool,
      (n) => `${model.words.crashing} ${words[n % 8]} ${words[Math.floor(n / 8) % 8]}`,
      'poisoner',
    );
    const innocents = [1, 2, 3, 4].map((n) =>
      askOn(pool, (i) => `${honest} ${words[i % 8]}`, `innocent ${n}`),
    );
    const braked = (): ServiceError | undefined =>
      poison.outcomes.find(
        (outcome): outcome is ServiceError =>
          typeof outcome !== 'string' && outcome.message.includes('too many texts'),
      );
    await until(() => braked() !== undefined, 50_000);
    const endsBefore = ends();
    const before = innocents.map(({ outcomes }) => outcomes.length);
    await until(() => innocents.every(({ outcomes }, i) => outcomes.length > before[i]! + 100));
    await Promise.all([poison, ...innocents].map(async ({ stop }) => stop()));
    expect(braked()?.retryAfterSeconds).toBeGreaterThan(500);
    // The three that count, and those under several texts: two at first, then one for each new text.
    expect(endsBefore).toBeLessThanOrEqual(8);
    expect(ends()).toBe(endsBefore);
    for (const [i, { outcomes }] of innocents.entries()) {
      expect(outcomes).not.toContain('refused');
      expect(new Set(outcomes.slice(before[i]! + 1))).toEqual(new Set(['answered']));
    }
  }, 90_000);

  it('is refused to nobody where others send to the encoders too', async () => {
    const { pool, supervisor, events } = await start({ exclusive: false });
    const other = createEncoderPool({ addresses: supervisor.addresses });
    onTestFinished(async () => other.close());
    await until(() => other.ready());
    const innocent = askOn(pool, () => honest, 'innocent');
    const outcomes: Outcome[] = [];
    for (let i = 0; i < 3; i++) outcomes.push(await ask(other, `${model.words.crashing} the`, 'poisoner'));
    await innocent.stop();
    expect(outcomes.every((outcome) => outcome instanceof ServiceError)).toBe(true);
    expect(outcomes.at(-1)).toMatchObject({ code: 'service_unavailable', retryAfterSeconds: 30 });
    expect(innocent.outcomes).not.toContain('refused');
    expect(events.filter(({ event }) => event === 'fatal_query')).toEqual([]);
  }, 60_000);
});

describe('documents that end encoders', () => {
  const poisonous = (n: number): string => `${'the '.repeat(n)}${model.words.crashing}`;
  const deadline = () => ({ deadlineMs: Date.now() + 60_000 });

  it('end the call after a few, and the next call gets further', async () => {
    const { pool, ends } = await start();
    // Each of them twice: what is known of one holds for the other.
    const texts = Array.from({ length: 50 }, (_, n) => poisonous(n >> 1));
    await expect(encodeAll(pool, texts, deadline())).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('several documents') as string,
    });
    await until(() => pool.ready());
    const endsBefore = ends();
    // Two under all of them, two under each of three, one under the next.
    expect(endsBefore).toBeLessThanOrEqual(2 + 2 * 3 + 1);
    let told: readonly number[] = [];
    const mended = await encodeAll(pool, [...texts.slice(0, 6), honest, ''], {
      onTokenCounts: (counts) => {
        told = counts;
      },
    });
    expect(told).toEqual([1, 1, 2, 2, 3, 3, 3, 0]);
    expect(mended.map(({ inputTokens }) => inputTokens)).toEqual(told);
    expect(mended.map(({ problem }) => problem)).toEqual(told.map((_, n) => (n < 6 ? refused : undefined)));
    expect(ends()).toBe(endsBefore);
  }, 60_000);
});
