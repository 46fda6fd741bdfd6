/** The core over sessions of our own making, which fail where a real one would only by a defect. */
import { describe, expect, it } from 'vitest';
import { documentSequence } from '../../../src/encoder/model/colbert-rules.ts';
import {
  EncoderCore,
  type EncodeRequest,
  type InferencePool,
} from '../../../src/encoder/scheduling/encoder-core.ts';
import type { EncoderFailure } from '../../../src/encoder/scheduling/encoder-failure.ts';
import { loadModel } from '../../../src/encoder/model/served-model.ts';
import type { BatchMessage } from '../../../src/encoder/inference/session-protocol.ts';
import { tinyModel } from '../../support/encoder/models.ts';
import { hangMs } from '../../support/running/eventually.ts';

type Batch = Omit<BatchMessage, 'type' | 'batchId'>;

const dim = 16;
const options = {
  documentBatchTokens: 4096,
  sharedBatchTokens: 4096,
  queryBatchTokens: 4096,
  lengthStep: 1,
  runTokens: 4096,
  lookAheadBatches: 8,
  queuedTokensMax: 100_000,
  queuedRequestsMax: 10_000,
};

/** Workers that run what they are given when asked to, and fail batches that they cannot take. */
class Sessions implements InferencePool {
  workers = 1;
  readonly batches: Batch[] = [];
  runMs = 1;
  readonly #fails: (ids: Int32Array, lone: boolean) => boolean;
  #waiting: (() => void)[] = [];

  constructor(fails: (ids: Int32Array, lone: boolean) => boolean) {
    this.#fails = fails;
  }

  roomFor(): number {
    return this.#waiting.length < this.workers ? Infinity : 0;
  }

  async run(batch: Batch) {
    this.batches.push(batch);
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#fails(batch.ids, batch.lone === true)) throw new Error('the graph failed');
    const vectors = new Float32Array(batch.rows * dim);
    return {
      output: { kind: 'query' as const, vectors, offsets: new Float32Array(batch.rows) },
      runMs: this.runMs,
      rowsMs: 0,
      startedAt: performance.now(),
    };
  }

  /** Lets one batch after another end until none follows. */
  async drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      this.#waiting.shift()!();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

async function core(fails: (ids: Int32Array, lone: boolean) => boolean) {
  const model = await loadModel(tinyModel);
  const sessions = new Sessions(fails);
  const [unencodable] = model.tokenizer.encode('document');
  const request: EncodeRequest = {
    model,
    tenantId: 't',
    deadlineMs: Date.now() + hangMs,
    signal: new AbortController().signal,
  };
  const broken: string[] = [];
  const encoder = new EncoderCore([model], sessions, options, (reason) => broken.push(reason));
  return { core: encoder, sessions, request, unencodable: unencodable!, broken };
}

/** Sends the texts so that all but the first wait together. Returns the outcome of each. */
async function encodeTogether(
  { core: encoder, sessions, request }: Awaited<ReturnType<typeof core>>,
  texts: readonly string[],
): Promise<string[]> {
  const outcomes = texts.map(async (text) =>
    encoder.encodeQuery(text, request).then(
      () => 'answered',
      (error: unknown) => (error as Error).message,
    ),
  );
  await new Promise((resolve) => setTimeout(resolve, 0));
  await new Promise((resolve) => setImmediate(resolve));
  await sessions.drain();
  return Promise.all(outcomes);
}

describe('a run that fails', () => {
  it('costs only the text that fails it, not those that shared its batch', async () => {
    let unencodable = -1;
    const stage = await core((ids) => ids.includes(unencodable));
    ({ unencodable } = stage);
    const texts = Array.from({ length: 40 }, (_, i) => (i === 17 ? 'document' : 'the late interaction'));
    const outcomes = await encodeTogether(stage, texts);
    expect(outcomes.filter((outcome) => outcome === 'answered')).toHaveLength(39);
    expect(outcomes[17]).toBe('the graph failed');
    // The runs: the first text alone, the others together, each of these alone, and one text that shows that the model works.
    expect(stage.sessions.batches).toHaveLength(2 + 39 + 1);
    expect(stage.broken).toEqual([]);
    expect(stage.core.statistics()).toMatchObject({ queuedRequests: 0, queuedTokens: 0 });
  });

  it('is the fault of a query only where the model runs other texts', async () => {
    let unencodable = -1;
    const working = await core((ids) => ids.includes(unencodable));
    ({ unencodable } = working);
    const refused = working.core.encodeQuery('document', working.request);
    refused.catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    await working.sessions.drain();
    await expect(refused).rejects.toMatchObject({ name: 'TextRefused', message: 'the graph failed' });
    const broken = await core(() => true);
    const failed = broken.core.encodeQuery('document', broken.request);
    failed.catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    await broken.sessions.drain();
    await expect(failed).rejects.toMatchObject({ name: 'EncoderFailure', kind: 'internal' });
    // It runs as a lone query and as any other, and then a text that shows whether the model works.
    expect(broken.sessions.batches).toHaveLength(3);
    expect(broken.broken).toEqual(['the model runs no text any more: the graph failed']);
  });

  it('is not tried for ever when no text can be run', async () => {
    const stage = await core(() => true);
    const outcomes = await encodeTogether(
      stage,
      Array.from({ length: 500 }, () => 'the'),
    );
    expect(new Set(outcomes)).toEqual(new Set(['the graph failed']));
    // Each text runs in its batch and alone. A text that shows whether the model works runs too, and alone if it shared a batch.
    expect(stage.sessions.batches.length).toBeLessThanOrEqual(4 * 500);
    expect(stage.core.statistics()).toMatchObject({ queuedRequests: 0, queuedTokens: 0 });
  });

  it('of documents is no document’s fault where the model runs nothing at all', async () => {
    const stage = await core(() => true);
    const chunking = { maxTokens: 20, overlapTokens: 0, minimumChunkTokens: 1 };
    async function* texts() {
      yield* ['the late', 'interaction', 'document'];
    }
    const admitted = await stage.core.admitDocuments(texts(), { ...stage.request, chunking });
    const parts: unknown[] = [];
    const running = admitted.run(async (part) => void parts.push(part));
    running.catch(() => undefined);
    await stage.sessions.drain();
    await expect(running).rejects.toMatchObject({ kind: 'internal', message: 'the graph failed' });
    admitted.release();
    expect(parts).toEqual([]);
    expect(stage.core.statistics()).toMatchObject({ queuedRequests: 0, queuedTokens: 0 });
  });

  it('is not tried again for a caller that has gone', async () => {
    let unencodable = -1;
    const stage = await core((ids) => ids.includes(unencodable));
    ({ unencodable } = stage);
    const controller = new AbortController();
    const gone = { ...stage.request, signal: controller.signal };
    const first = stage.core.encodeQuery('the', stage.request);
    const left = ['late', 'interaction'].map(async (text) => stage.core.encodeQuery(text, gone));
    const failing = stage.core.encodeQuery('document', gone);
    for (const work of [...left, failing]) work.catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    const draining = stage.sessions.drain();
    controller.abort(new Error('gone'));
    await draining;
    await expect(first).resolves.toBeDefined();
    await expect(Promise.all(left)).rejects.toMatchObject({ kind: 'cancelled' });
    await expect(failing).rejects.toMatchObject({ kind: 'cancelled' });
    expect(stage.sessions.batches.length).toBeLessThanOrEqual(2);
  });
});

describe('a query that waits for nobody else', () => {
  const lone = ({ sessions }: Awaited<ReturnType<typeof core>>) =>
    sessions.batches.map((batch) => batch.lone === true);
  const turn = async () => new Promise((resolve) => setImmediate(resolve));

  it('runs as a lone one, and a query that comes meanwhile runs at once beside it', async () => {
    const stage = await core(() => false);
    stage.sessions.workers = 2;
    const queries = [stage.core.encodeQuery('the', stage.request)];
    await turn();
    queries.push(stage.core.encodeQuery('late', stage.request));
    await turn();
    expect(lone(stage)).toEqual([true, false]);
    await stage.sessions.drain();
    await Promise.all(queries);
    queries.push(stage.core.encodeQuery('interaction', stage.request));
    await turn();
    expect(lone(stage)).toEqual([true, false, true]);
    await stage.sessions.drain();
    await Promise.all(queries);
  });

  it('runs once more where other queries run, if it fails as a lone one', async () => {
    const stage = await core((_, isLone) => isLone);
    expect(await encodeTogether(stage, ['the'])).toEqual(['answered']);
    expect(lone(stage)).toEqual([true, false]);
    expect(stage.broken).toEqual([]);
  });
});

describe('documents whose chunks overlap by nearly all of them', () => {
  const chunking = { maxTokens: 20, overlapTokens: 19, minimumChunkTokens: 1 };
  let read = 0;
  async function* texts(count: number, tokens: number) {
    for (read = 0; read < count; read++) yield 'late '.repeat(tokens);
  }

  it('count in the queue with all tokens of their windows, special ones too', async () => {
    const stage = await core(() => false);
    const { documentHead, tail } = stage.core.models[0]!.rules;
    const admitted = await stage.core.admitDocuments(texts(1, 100), { ...stage.request, chunking });
    expect([...admitted.tokenCounts]).toEqual([100]);
    // 81 windows of 20.
    const queuedTokens = 81 * (documentHead.length + 20 + tail.length);
    expect(stage.core.statistics()).toMatchObject({ queuedTokens });
    admitted.release();
    expect(stage.core.statistics()).toMatchObject({ queuedTokens: 0 });
  });

  it('are refused beyond a bound of tokens, and of bytes where rows are long', async () => {
    const { core: encoder, sessions, request } = await core(() => false);
    const unbounded = { ...options, queuedTokensMax: 1e9 };
    const [model] = encoder.models;
    const long = { ...model!, dim: 2046 };
    const pooled = { ...long, poolFactor: 3 };
    const single = { maxTokens: 1, overlapTokens: 0, minimumChunkTokens: 1 };
    for (const [served, cut, most, documents] of [
      [model!, chunking, '8388608 tokens', 8],
      // 23 positions a token of 2,048 bytes each.
      [long, chunking, '1073741824 bytes', 0],
      // A chunk has 4 positions, which leave 2 rows.
      [pooled, single, '1073741824 bytes', 5],
    ] as const) {
      const made = new EncoderCore([served], sessions, unbounded);
      await expect(
        made.admitDocuments(texts(1000, 50_000), { ...request, model: served, chunking: cut }),
      ).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringMatching(new RegExp(`${most}: .*overlap less`)),
      });
      expect(read).toBe(documents);
      expect(made.statistics()).toMatchObject({ queuedRequests: 0, queuedTokens: 0 });
    }
  });
});

describe('documents that would take far longer than their deadline', () => {
  it('are refused at once and counted, with the time until they would not', async () => {
    const stage = await core(() => false);
    // Batches of one millisecond show the rate.
    await encodeTogether(
      stage,
      Array.from({ length: 800 }, () => 'the late interaction'),
    );
    const { tokensPerSecond } = stage.core.statistics();
    expect(tokensPerSecond).toBeGreaterThan(0);
    const chunking = { maxTokens: 20, overlapTokens: 0, minimumChunkTokens: 1 };
    const { documentHead, tail } = stage.core.models[0]!.rules;
    async function* texts() {
      const shareOfText = 20 / (documentHead.length + 20 + tail.length);
      yield 'late '.repeat(tokensPerSecond * shareOfText);
    }
    const hurried = { ...stage.request, deadlineMs: Date.now() + 100, chunking };
    // The caller is told the counts first.
    const admitted = await stage.core.admitDocuments(texts(), hurried);
    const refused = await admitted.run(() => Promise.resolve()).catch((error: unknown) => error);
    admitted.release();
    expect(refused).toMatchObject({
      kind: 'exhausted',
      message: expect.stringContaining('of work are queued'),
    });
    const { retryDelayMs } = refused as EncoderFailure;
    expect(retryDelayMs).toBeGreaterThanOrEqual(900);
    expect(retryDelayMs).toBeLessThanOrEqual(1001);
    expect(stage.core.statistics()).toMatchObject({ rejected: 1, queuedRequests: 0, queuedTokens: 0 });
  });
});

describe('the rate of a full queue', () => {
  it('is not lowered by batches that are far from full', async () => {
    const stage = await core(() => false);
    const texts = (count: number) => Array.from({ length: count }, () => 'the late interaction');
    const rate = (): number => stage.core.statistics().tokensPerSecond;
    await encodeTogether(stage, texts(800));
    const fast = rate();
    expect(fast).toBeGreaterThan(0);
    stage.sessions.runMs = 100;
    // More than 128 tokens, far less than half of 4,096.
    await encodeTogether(stage, texts(80));
    expect(rate()).toBe(fast);
    await encodeTogether(stage, texts(800));
    expect(Math.max(...stage.sessions.batches.map(({ ids }) => ids.length))).toBeGreaterThan(2048);
    expect(rate()).toBeLessThan(fast);
  });
});

describe('statistics', () => {
  it('do not count texts that the encoder runs for itself', async () => {
    const stage = await core(() => false);
    const [model] = stage.core.models;
    const sequence = documentSequence(model!.rules, model!.tokenizer.encode('the late interaction'));
    const run = stage.core.runTogether(0, 'document', [sequence, sequence, sequence]);
    const asked = stage.core.encodeQuery('the', stage.request);
    await new Promise((resolve) => setImmediate(resolve));
    await stage.sessions.drain();
    await Promise.allSettled([asked, run]);
    const { batches, tokens, paddedTokens } = stage.core.statistics();
    expect(batches).toBe(1);
    expect(paddedTokens).toBe(tokens);
  });
});

describe('documents that have all come', () => {
  it('are tokenised with turns of the event loop between', async () => {
    const { core: encoder, request } = await core(() => false);
    let turns = 0;
    let counting = setImmediate(function count() {
      turns++;
      counting = setImmediate(count);
    });
    const chunking = { maxTokens: 20, overlapTokens: 0, minimumChunkTokens: 1 };
    async function* texts() {
      for (let i = 0; i < 50; i++) yield 'the late interaction';
    }
    const admitted = await encoder.admitDocuments(texts(), { ...request, chunking });
    clearImmediate(counting);
    admitted.release();
    expect(turns).toBeGreaterThanOrEqual(49);
  });
});
