/** How the size of document batches is found: the choice, giving way to callers, remembering, and a real run. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readBudget, writeBudget } from '../../src/encoder/budget-cache.ts';
import { documentBudgets, smallestNearBest, sweepBudgets } from '../../src/encoder/budget-sweep.ts';
import type { EncoderCore } from '../../src/encoder/encoder-core.ts';
import { tuneWhenIdle } from '../../src/encoder/idle-tuning.ts';
import { loadModel } from '../../src/encoder/served-model.ts';
import { sweepWanted } from '../../src/encoder/tuning.ts';
import { defaultModel, startEncoders, tinyModel } from './encoders.ts';

const rates = (given: Readonly<Record<number, number>>) =>
  Object.entries(given).map(([tokens, rate]) => ({ batchTokens: Number(tokens), tokensPerSecond: rate }));

/** Answers from a table; a missing entry fails, as a batch that does not fit does. */
function measuring(table: Readonly<Record<number, number>>, bytes: Readonly<Record<number, number>> = {}) {
  const asked: number[] = [];
  return {
    asked,
    measure: async (batchTokens: number) => {
      asked.push(batchTokens);
      const tokensPerSecond = table[batchTokens];
      if (tokensPerSecond === undefined) throw new Error('out of memory');
      return Promise.resolve({ tokensPerSecond, residentBytes: bytes[batchTokens] ?? 0 });
    },
  };
}

describe('the choice of a budget', () => {
  it.each([
    [{ 64: 50, 128: 80, 256: 98, 512: 100, 1024: 99 }, 256],
    [{ 64: 50, 128: 80, 256: 96.9, 512: 100, 1024: 99 }, 512],
    [{ 64: 97, 128: 100 }, 64],
    [{ 128: 100, 64: 100 }, 64],
  ])('of %o is the smallest within 3%% of the best', (table, expected) => {
    expect(smallestNearBest(rates(table))?.batchTokens).toBe(expected);
  });

  it('doubles from 64 to 16,384 on a CPU and to 65,536 on a GPU', () => {
    expect(documentBudgets('cpu')).toEqual([64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384]);
    expect(documentBudgets('cuda').at(-1)).toBe(65_536);
  });
});

describe('a sweep', () => {
  const candidates = documentBudgets('cpu');
  const residentBytesMax = 1000;

  it('measures each budget twice and ends after two that are slower', async () => {
    const { measure, asked } = measuring({ 64: 60, 128: 90, 256: 100, 512: 95, 1024: 90, 2048: 200 });
    const sweep = await sweepBudgets({ candidates, measure, residentBytesMax });
    expect(sweep).toMatchObject({ chosen: { batchTokens: 256 }, ended: 'slower' });
    expect(asked).toEqual([64, 64, 128, 128, 256, 256, 512, 512, 1024, 1024]);
  });

  it('goes on through one slower budget', async () => {
    const table = { 64: 60, 128: 90, 256: 80, 512: 120, 1024: 119, 2048: 118, 4096: 118, 8192: 117 };
    const { measure } = measuring({ ...table, 16_384: 118 });
    const sweep = await sweepBudgets({ candidates, measure, residentBytesMax });
    expect(sweep).toMatchObject({ chosen: { batchTokens: 512 }, ended: 'all measured' });
  });

  it('stops where a batch does not run, and where memory is at its bound', async () => {
    const failing = await sweepBudgets({ candidates, residentBytesMax, ...measuring({ 64: 60, 128: 90 }) });
    expect(failing).toMatchObject({ chosen: { batchTokens: 128 }, ended: 'failed' });
    const large = measuring({ 64: 60, 128: 90, 256: 180 }, { 256: 1001 });
    const bounded = await sweepBudgets({ candidates, residentBytesMax, ...large });
    expect(bounded).toMatchObject({ chosen: { batchTokens: 128 }, ended: 'memory' });
    expect((await sweepBudgets({ candidates, residentBytesMax, ...measuring({}) })).chosen).toBeUndefined();
  });
});

describe('an encoder that tunes itself', () => {
  /** An encoder whose callers come when the test says so; runs take no time. */
  async function coreOf(onRun: (signal: AbortSignal | undefined) => Promise<void>) {
    const model = await loadModel(tinyModel);
    const state = { queuedRequests: 0, batches: 0, budget: 256, runs: 0 };
    const core = {
      models: [model],
      statistics: () => ({ queuedRequests: state.queuedRequests, batches: state.batches }),
      useDocumentBudget: (tokens: number) => {
        state.budget = tokens;
      },
      runDocumentSequence: async (_: number, __: unknown, signal?: AbortSignal) => {
        state.runs++;
        await onRun(signal);
      },
    } as unknown as EncoderCore;
    return { core, state };
  }

  it('waits until there was no work for a while, then tries every budget and keeps one', async () => {
    const { core, state } = await coreOf(async () => Promise.resolve());
    const waits: number[] = [];
    const pause = async (ms: number): Promise<void> => {
      waits.push(ms);
      // Callers: a request waits at first, then batches run, then nothing happens.
      state.queuedRequests = 0;
      if (waits.length === 2) state.batches++;
      expect(state.runs).toBe(0);
      return Promise.resolve();
    };
    state.queuedRequests = 1;
    const options = { core, provider: 'cpu', workers: 1, batchTokens: 256, idleMs: 1000, pause } as const;
    const sweep = await tuneWhenIdle({ ...options, signal: new AbortController().signal });
    expect(waits).toEqual([1000, 1000, 1000]);
    expect(state.budget).toBe(sweep?.chosen?.batchTokens);
    expect(state.runs).toBeGreaterThan(0);
  });

  it('gives way to a caller with the old budget in use, and begins again', async () => {
    const caller = { came: false, left: false };
    const { core, state } = await coreOf(async (signal) => {
      if (caller.left) return;
      // The first measurement lasts until it is told to give way.
      state.queuedRequests = 1;
      caller.came = true;
      const aborted = Promise.withResolvers<never>();
      signal!.addEventListener('abort', () => aborted.reject(new Error('cancelled')));
      await aborted.promise;
    });
    const pause = async (): Promise<void> => {
      if (caller.came) expect(state.budget).toBe(256);
      state.queuedRequests = 0;
      caller.left = caller.came;
      return Promise.resolve();
    };
    const options = { core, provider: 'cpu', workers: 1, batchTokens: 256, idleMs: 1000, pause } as const;
    const sweep = await tuneWhenIdle({ ...options, signal: new AbortController().signal });
    expect(caller).toEqual({ came: true, left: true });
    expect(sweep?.chosen).toBeDefined();
  });

  it('stops when the encoder ends', async () => {
    const ending = new AbortController();
    const { core } = await coreOf(async () => {
      ending.abort();
      return Promise.reject(new Error('cancelled'));
    });
    const options = { core, provider: 'cpu', workers: 1, batchTokens: 256, idleMs: 0 } as const;
    expect(await tuneWhenIdle({ ...options, signal: ending.signal })).toBeUndefined();
  });
});

describe('a budget that was found', () => {
  function temporaryFile(): string {
    const directory = mkdtempSync(path.join(tmpdir(), 'maxsimd-budget-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    return path.join(directory, 'budgets.json');
  }

  it('is remembered beside others, and a broken file is as good as none', () => {
    const file = temporaryFile();
    expect(readBudget({ file, key: 'a' })).toBeUndefined();
    writeBudget({ file, key: 'a' }, { batchTokens: 256, tokensPerSecond: 7000.4 });
    writeBudget({ file, key: 'b' }, { batchTokens: 512, tokensPerSecond: 9000 });
    expect(readBudget({ file, key: 'a' })).toEqual({ batchTokens: 256, tokensPerSecond: 7000 });
    expect(readBudget({ file, key: 'b' })?.batchTokens).toBe(512);
    writeFileSync(file, '{"a":');
    expect(readBudget({ file, key: 'a' })).toBeUndefined();
  });

  it('makes another sweep unnecessary, as does one that was given', () => {
    const asked = { sweep: 'idle', 'batch-tokens': 0, 'budget-cache': '/file' } as const;
    expect(sweepWanted(asked, undefined)).toBe('idle');
    expect(sweepWanted({ ...asked, sweep: 'start' }, undefined)).toBe('start');
    expect(sweepWanted(asked, 256)).toBe('off');
    expect(sweepWanted({ ...asked, 'batch-tokens': 512 }, undefined)).toBe('off');
    expect(sweepWanted({ ...asked, 'budget-cache': '' }, undefined)).toBe('off');
  });

  it('is measured on the real model when asked for, and used by the next start at once', async () => {
    const file = temporaryFile();
    const start = async () => {
      const encoders = await startEncoders({
        modelDirectories: [defaultModel],
        threads: 0,
        extraArguments: ['--sweep', 'start', '--budget-cache', file],
      });
      await encoders.close();
      return encoders.logs.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    };
    const measured = (await start()).find(({ msg }) => msg === 'document batches measured');
    expect(Object.keys(measured?.['tokens_per_second'] as object).length).toBeGreaterThan(2);
    const [[key, entry]] = Object.entries(
      JSON.parse(readFileSync(file, 'utf8')) as Record<string, { batch_tokens: number }>,
    ) as [[string, { batch_tokens: number }]];
    expect(key).toMatch(/minilm-l6-maxsim\/1 [0-9a-f]{16} \| cpu \| .* \| onnxruntime \d/);
    expect(entry.batch_tokens).toBe(measured?.['batch_tokens']);
    const again = await start();
    expect(again.some(({ msg }) => msg === 'document batches measured')).toBe(false);
    expect(again.find(({ msg }) => msg === 'ready')).toMatchObject({ batch_tokens: entry.batch_tokens });
  }, 120_000);
});
