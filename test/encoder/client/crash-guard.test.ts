/** Texts that end the encoder that runs them: which calls are refused, which are answered, and how many encoders end. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createEncoderPool, type EncoderPoolOptions } from '../../../src/encoder/client/pool.ts';
import type { EncoderPool, EncodeOptions } from '../../../src/encoder/protocol/contract.ts';
import { UnencodableTexts, Retrial } from '../../../src/encoder/client/crash-guard.ts';
import { ServiceError } from '../../../src/errors.ts';
import { callOptions, encodeAll } from '../../support/encoder/encoders.ts';
import { eventually, hangMs } from '../../support/running/eventually.ts';
import { startMortalEncoder } from '../../support/encoder/mortal-encoder.ts';

const foreignModel = { name: 'foreign', version: '1' };

const refused = 'the encoder ends when it runs this text';

async function stage(count = 1, options: Partial<EncoderPoolOptions> = {}) {
  const encoders = await Promise.all(Array.from({ length: count }, startMortalEncoder));
  const events: string[] = [];
  const pool = createEncoderPool({
    addresses: encoders.map(({ address }) => address),
    exclusive: true,
    healthIntervalMs: 50,
    onEvent: ({ event }) => events.push(event),
    ...options,
  });
  onTestFinished(async () => pool.close());
  await eventually(() => events.length >= count);
  return { pool, events, encoders, encoder: encoders[0]! };
}

/** The outcome of a query: `answered`, or why it was not. */
async function ask(pool: EncoderPool, text: string, changes: Partial<EncodeOptions> = {}): Promise<string> {
  try {
    const query = await pool.encodeQuery(text, callOptions(pool, { model: foreignModel, ...changes }));
    return query.problem ?? 'answered';
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
}

/** The outcome of each document of a call. */
async function store(pool: EncoderPool, texts: readonly string[]): Promise<string[]> {
  const documents = await encodeAll(pool, texts, { model: foreignModel });
  return documents.map(({ problem, chunkRows }) => problem ?? (chunkRows.length > 0 ? 'answered' : 'empty'));
}

describe('a query that ends the encoder that runs it', () => {
  it('ends three and is refused; those beside it are answered', async () => {
    const { pool, encoder, events } = await stage();
    encoder.times.runMs = 300;
    const texts = Array.from({ length: 20 }, (_, i) => (i === 0 ? 'unencodable' : `honest ${i}`));
    const calls = texts.map(async (text) => ask(pool, text));
    await eventually(() => events.includes('ejected'));
    encoder.times.runMs = 10;
    const late = Array.from({ length: 10 }, async () => ask(pool, 'honest'));
    const outcomes = await Promise.all(calls);
    expect(outcomes).toEqual(texts.map((text) => (text === 'unencodable' ? refused : 'answered')));
    expect(new Set(await Promise.all(late))).toEqual(new Set(['answered']));
    expect(encoder.ends).toHaveLength(3);
    expect(encoder.ends[0]!.length).toBeGreaterThan(10);
    expect(encoder.ends.slice(1)).toEqual([['unencodable'], ['unencodable']]);
    expect(events.filter((event) => event === 'unencodable_query')).toHaveLength(1);
  });

  it('ends no more when it is asked again, and others are answered meanwhile', async () => {
    const { pool, encoder } = await stage();
    expect(await ask(pool, 'unencodable')).toBe(refused);
    const again = Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? 'unencodable' : 'honest'));
    const outcomes = await Promise.all(again.map(async (text) => ask(pool, text)));
    expect(outcomes).toEqual(again.map((text) => (text === 'unencodable' ? refused : 'answered')));
    expect(encoder.ends).toHaveLength(3);
  });

  it('ends three though several ask it at once, each of which is refused', async () => {
    const { pool, encoder } = await stage();
    encoder.times.runMs = 10;
    const texts = ['honest', 'unencodable', 'unencodable', 'unencodable', 'honest'];
    const outcomes = await Promise.all(texts.map(async (text) => ask(pool, text)));
    expect(outcomes).toEqual(['answered', refused, refused, refused, 'answered']);
    expect(encoder.ends).toHaveLength(3);
  });

  it('is refused the second time, although its first caller had left', async () => {
    const { pool, encoder } = await stage();
    const controller = new AbortController();
    const left = ask(pool, 'unencodable', { signal: controller.signal });
    await eventually(() => encoder.ends.length === 2);
    controller.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    expect(await ask(pool, 'unencodable')).toBe(refused);
    // Each time among others and then alone.
    expect(encoder.ends).toHaveLength(4);
  });

  it('never comes to another encoder, which answers meanwhile', async () => {
    const { pool, encoders } = await stage(2);
    const asked = ask(pool, 'unencodable');
    await eventually(() => encoders.some(({ ends }) => ends.length > 0));
    expect(await ask(pool, 'honest')).toBe('answered');
    expect(await asked).toBe(refused);
    expect(new Set(encoders.map(({ ends }) => ends.length))).toEqual(new Set([0, 3]));
  });

  it('is unavailable where others send to the encoders too, who may have ended them', async () => {
    const { pool, encoder, events } = await stage(1, { exclusive: false });
    for (let i = 0; i < 3; i++) {
      const call = pool.encodeQuery('unencodable', callOptions(pool, { model: foreignModel }));
      await expect(call).rejects.toMatchObject({ code: 'service_unavailable', retryAfterSeconds: 30 });
    }
    expect(encoder.ends).toHaveLength(3);
    expect(events).not.toContain('unencodable_query');
  });
});

describe('a query that was running when the encoder ended', () => {
  it('is never refused where only its connection broke, and is answered after two', async () => {
    const { pool, encoder } = await stage(1, { healWaitMs: 2000 });
    encoder.times.runMs = 50;
    const outcomes: string[] = [];
    for (const cutsMax of [2, 3]) {
      const call = ask(pool, 'honest');
      const runsBefore = encoder.runs.length;
      for (let cuts = 1; cuts <= cutsMax; cuts++) {
        await eventually(() => encoder.runs.length === runsBefore + cuts);
        encoder.cut();
      }
      outcomes.push(await call);
    }
    expect(outcomes).toEqual(['answered', 'the encoders keep failing']);
  });

  it('is unavailable in good time when none comes back', async () => {
    const { pool, encoder } = await stage(1, { healWaitMs: 100 });
    encoder.times.goneMs = 3_600_000;
    const startedAt = performance.now();
    expect(await ask(pool, 'unencodable')).toMatch('no encoder serves');
    expect(performance.now() - startedAt).toBeLessThan(hangMs);
  });

  it('ends with its own caller while it waits for its turn', async () => {
    const { pool, encoder } = await stage();
    encoder.times.goneMs = 3_600_000;
    const controller = new AbortController();
    const reason = new Error('the client has gone');
    const call = ask(pool, 'unencodable', { signal: controller.signal });
    await eventually(() => encoder.ends.length === 1);
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  it('goes to another encoder when none comes back in time', async () => {
    const { pool, encoders } = await stage(2, { healWaitMs: 100 });
    for (const { times } of encoders) times.runMs = 50;
    const calls = ['one', 'two'].map(async (text) => ask(pool, text));
    await eventually(() => encoders.every(({ runs }) => runs.length === 1));
    encoders[0]!.times.goneMs = 60_000;
    encoders[0]!.kill();
    expect(await Promise.all(calls)).toEqual(['answered', 'answered']);
  });

  it('is answered though the next encoder was killed under it alone', async () => {
    const { pool, encoder } = await stage();
    encoder.times.runMs = 50;
    const call = ask(pool, 'honest');
    for (let kills = 1; kills <= 2; kills++) {
      await eventually(() => encoder.runs.length === kills);
      encoder.kill();
    }
    expect(await call).toBe('answered');
  });

  it('does not count as alone beside a query that was given up', async () => {
    const { pool, encoder } = await stage();
    encoder.times.runMs = 100;
    const controller = new AbortController();
    const left = ask(pool, 'left', { signal: controller.signal });
    const honest = ask(pool, 'honest');
    await eventually(() => encoder.runs.length === 2);
    encoder.kill();
    await eventually(() => encoder.runs.length === 3);
    controller.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    // It ran beside the other one, then alone. A text is refused only after two ends alone.
    for (const runs of [4, 5]) {
      await eventually(() => encoder.runs.length === runs);
      encoder.kill();
    }
    expect(await honest).toBe('answered');
  });
});

describe('documents that end the encoder that runs them', () => {
  it('are refused alone, the others of their call and of other calls are answered', async () => {
    const { pool, encoder, events } = await stage();
    const calls = [
      ['one', 'unencodable', 'two', '', 'three'],
      ['four', 'five'],
    ];
    encoder.times.runMs = 10;
    const outcomes = await Promise.all(calls.map(async (texts) => store(pool, texts)));
    expect(outcomes).toEqual([
      ['answered', refused, 'answered', 'empty', 'answered'],
      ['answered', 'answered'],
    ]);
    expect(encoder.ends).toHaveLength(3);
    expect(encoder.ends.slice(1)).toEqual([['unencodable'], ['unencodable']]);
    expect(events.filter((event) => event === 'unencodable_document')).toHaveLength(1);
    expect(await store(pool, ['unencodable', 'six'])).toEqual([refused, 'answered']);
    expect(encoder.ends).toHaveLength(3);
  });

  it('end the call after three of them, and the next call gets further', async () => {
    const { pool, encoder } = await stage();
    const texts = Array.from({ length: 5 }, (_, i) => `unencodable ${i}`);
    await expect(store(pool, texts)).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('several documents') as string,
    });
    expect(encoder.ends).toHaveLength(1 + 2 * 3);
    expect(await store(pool, texts)).toEqual(texts.map(() => refused));
    expect(encoder.ends).toHaveLength(1 + 2 * 3 + 1 + 2 * 2);
  });

  it('tell their tokens once, of every text', async () => {
    const { pool } = await stage();
    const reported: (readonly number[])[] = [];
    await store(pool, ['unencodable text']);
    const onTokenCounts = (counts: readonly number[]): void => void reported.push(counts);
    const texts = ['unencodable text', 'an unencodable text', 'honest'];
    const documents = await encodeAll(pool, texts, { model: foreignModel, onTokenCounts });
    expect(reported).toEqual([[2, 3, 1]]);
    expect(documents.map(({ inputTokens }) => inputTokens)).toEqual([2, 3, 1]);
  });
});

describe('the turns of lost calls', () => {
  it('is over after four seconds, for those that wait and those that had their turn', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const retrial = new Retrial();
    const [first, second] = [{}, {}];
    let ended = 0;
    retrial.join(first);
    retrial.join(second);
    retrial.begin(() => ended++);
    vi.advanceTimersByTime(3999);
    expect([retrial.isOpen, retrial.hasTurn(first), retrial.hasTurn(second)]).toEqual([true, true, false]);
    retrial.leave(first);
    expect(retrial.hasTurn(second)).toBe(true);
    vi.advanceTimersByTime(1);
    expect([retrial.isOpen, retrial.hasTurn(second), ended]).toEqual([false, false, 1]);
  });

  it('is over with the last of them, and does not begin for a call that comes later', () => {
    const retrial = new Retrial();
    const call = {};
    retrial.join(call);
    retrial.begin(() => undefined);
    retrial.leave(call);
    expect(retrial.isOpen).toBe(false);
    retrial.join({});
    expect(retrial.isOpen).toBe(false);
  });

  it('goes from one to the next, each document one turn', () => {
    const retrial = new Retrial();
    const calls = [{}, {}, {}];
    for (const call of calls) retrial.join(call);
    retrial.begin(() => undefined);
    onTestFinished(() => retrial.end());
    const turns: number[] = [];
    for (let i = 0; i < 5; i++) {
      const at = calls.findIndex((call) => retrial.hasTurn(call));
      turns.push(at);
      retrial.pass(calls[at]!);
    }
    expect(turns).toEqual([0, 1, 2, 0, 1]);
  });
});

describe('the memory of unencodable texts', () => {
  const model = { name: 'model', version: '1' };
  const run = { tenantId: 'tenant', model };
  const chunking = { maxTokens: 8, overlapTokens: 0, minimumChunkTokens: 1 };

  it('knows a text of one tenant, model and way to run it, and nothing else', () => {
    const unencodable = new UnencodableTexts(1000);
    expect([unencodable.noteEnd('text', run), unencodable.has('text', run)]).toEqual([false, false]);
    expect([unencodable.noteEnd('text', run), unencodable.has('text', run)]).toEqual([true, true]);
    expect(unencodable.has('text ', run)).toBe(false);
    const models = [
      { ...model, name: 'other' },
      { ...model, version: '2' },
    ].map((other) => ({ model: other }));
    for (const other of [{ tenantId: 'other' }, ...models, { chunking }]) {
      expect(unencodable.has('text', { ...run, ...other })).toBe(false);
    }
    for (let ends = 1; ends <= 2; ends++) unencodable.noteEnd('document', { ...run, chunking });
    expect(unencodable.has('document', { ...run, chunking })).toBe(true);
    expect(unencodable.has('document', { ...run, chunking: { ...chunking, maxTokens: 9 } })).toBe(false);
  });

  it('forgets texts that were answered, and all texts after a while', async () => {
    const unencodable = new UnencodableTexts(50);
    unencodable.noteEnd('text', run);
    unencodable.clear('text', run);
    expect(unencodable.noteEnd('text', run)).toBe(false);
    expect(unencodable.noteEnd('text', run)).toBe(true);
    await expect.poll(() => unencodable.has('text', run)).toBe(false);
  });
});
