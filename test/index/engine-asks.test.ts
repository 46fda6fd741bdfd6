/** Asking the engine again: each reason is mended, counted once for each repeat, and given up with its caller. */
import { describe, expect, it } from 'vitest';
import { askAgain, noRepeats, type Repeats } from '../../src/index/ask-again.ts';
import { alone, before } from '../../src/index/asking.ts';
import { EngineAsks, type SegmentParts } from '../../src/index/engine-asks.ts';
import { engineError } from '../support/stages/faults.ts';

const where = Uint8Array.of(1);

interface Asked {
  readonly generation: number;
  readonly timeoutMs: number;
}

/** An index whose engine answers by a script: an error is thrown, a function runs first. */
class Scripted {
  readonly repeats: Repeats = noRepeats();
  readonly asked: Asked[] = [];
  readonly failures: unknown[] = [];
  readonly calls: string[] = [];
  readonly snapshot = { generation: 1, moves: 0 };
  usable = true;
  closed = 0;
  /** While a load of values or parts runs. */
  during: () => Promise<void> = async () => undefined;
  readonly #asks: EngineAsks;

  constructor({ fetches = false } = {}) {
    const parts: SegmentParts = {
      noteParts: () => void this.calls.push('note parts'),
      fetchParts: async () => {
        this.calls.push('fetch parts');
        await this.during();
      },
    };
    this.#asks = new EngineAsks({
      values: {
        load: async ({ generation, endsAt, signal }) => {
          this.calls.push(`values at ${generation}`);
          await before(endsAt, this.during(), 'values are loaded', signal);
        },
      },
      repeats: this.repeats,
      assertUsable: () => {
        if (!this.usable) throw new Error('opening again');
      },
      onFailed: (error) => void this.failures.push(error),
      ...(fetches ? { parts } : {}),
    });
  }

  ask(
    script: (Error | (() => void | 'gives way'))[],
    { timeoutMs = 10_000, signal = alone.signal, inTurn = alone.inTurn } = {},
  ): Promise<string> {
    const asking = {
      inTurn,
      signal,
      endsAt: performance.now() + timeoutMs,
      snapshot: () => ({ ...this.snapshot }),
    };
    return this.#asks.ask({ where, timeoutMs }, asking, ({ generation, timeoutMs: left }) => ({
      next: async () => {
        this.asked.push({ generation, timeoutMs: left });
        const step = script.shift();
        if (step instanceof Error) throw step;
        return step?.() === 'gives way' ? undefined : 'found';
      },
      close: () => {
        this.closed += 1;
      },
    }));
  }

  merge = (): void => {
    this.snapshot.moves += 1;
    this.snapshot.generation += 1;
  };
}

const absent = () =>
  Object.assign(engineError('absent'), { segmentIds: Float64Array.of(1), parts: Uint32Array.of(0) });

describe('the engine is asked again', () => {
  it('about the newest snapshot when a merge moved records meanwhile', async () => {
    const index = new Scripted();
    expect(await index.ask([index.merge, index.merge])).toBe('found');
    expect(index.asked.map(({ generation }) => generation)).toEqual([1, 2, 3]);
    expect(index.repeats).toEqual({ ...noRepeats(), moved: 2 });
  });

  it('about the same snapshot once missing values are loaded, so that no upsert adds more of them', async () => {
    const index = new Scripted();
    index.during = async () => void (index.snapshot.generation += 1);
    const missing = engineError('values_missing');
    expect(await index.ask([missing, missing])).toBe('found');
    expect(index.calls).toEqual(['values at 1', 'values at 1']);
    expect(index.asked.map(({ generation }) => generation)).toEqual([1, 1, 1]);
    expect(index.repeats).toEqual({ ...noRepeats(), values: 2 });
  });

  it('once missing parts are fetched, and told which are here before it is asked', async () => {
    const index = new Scripted({ fetches: true });
    expect(await index.ask([absent()])).toBe('found');
    expect(index.calls).toEqual(['note parts', 'fetch parts', 'note parts']);
    expect(index.repeats).toEqual({ ...noRepeats(), parts: 1 });
  });

  it('for each reason in turn, each with the time that is left', async () => {
    const index = new Scripted({ fetches: true });
    await index.ask([absent(), engineError('values_missing'), index.merge], { timeoutMs: 5_000 });
    expect(index.repeats).toEqual({ ...noRepeats(), moved: 1, values: 1, parts: 1 });
    const left = index.asked.map(({ timeoutMs }) => timeoutMs);
    expect(left).toEqual(left.toSorted((a, b) => b - a));
    expect(left[0]).toBeLessThanOrEqual(5_000);
    expect(index.failures).toEqual([]);
  });
});

describe('work that gives way', () => {
  const givesWay = () => 'gives way' as const;

  it('goes on in the next turn of the asker, and is freed at its end', async () => {
    const index = new Scripted();
    let turns = 0;
    const inTurn = <T>(task: () => Promise<T>): Promise<T> => {
      turns += 1;
      return task();
    };
    expect(await index.ask([givesWay, givesWay], { inTurn })).toBe('found');
    expect([turns, index.closed, index.repeats]).toEqual([3, 1, noRepeats()]);
  });

  it('begins again when records moved during its first slice, and only then', async () => {
    const index = new Scripted();
    const moved = () => (index.merge(), givesWay());
    expect(await index.ask([moved, givesWay, moved, index.merge])).toBe('found');
    expect(index.asked.map(({ generation }) => generation)).toEqual([1, 2, 2, 2]);
    expect([index.repeats.moved, index.closed]).toEqual([1, 2]);
  });

  it('begins again after a slice that needed what has been fetched since', async () => {
    const index = new Scripted({ fetches: true });
    expect(await index.ask([givesWay, absent(), givesWay])).toBe('found');
    expect(index.calls).toEqual(['note parts', 'fetch parts', 'note parts']);
    expect([index.repeats.parts, index.closed]).toEqual([1, 2]);
  });

  it('is freed when its caller has gone, when it fails, and when the index cannot be used any more', async () => {
    const left = new Scripted();
    let turns = 0;
    const inTurn = async <T>(task: () => Promise<T>): Promise<T> => {
      turns += 1;
      if (turns > 1) throw new Error('gone');
      return await task();
    };
    await expect(left.ask([givesWay], { inTurn })).rejects.toThrow('gone');
    const failed = new Scripted();
    await expect(failed.ask([givesWay, engineError('io')])).rejects.toBeInstanceOf(Error);
    const unusable = new Scripted();
    const fails = () => ((unusable.usable = false), givesWay());
    await expect(unusable.ask([fails])).rejects.toThrow('opening again');
    expect([left, failed, unusable].map(({ asked, closed }) => [asked.length, closed])).toEqual([
      [1, 1],
      [2, 1],
      [1, 1],
    ]);
  });
});

describe('the engine is not asked again', () => {
  it('after any other failure, nor for parts where nothing is fetched', async () => {
    for (const error of [engineError('io'), engineError('closed'), absent()]) {
      const index = new Scripted();
      await expect(index.ask([error])).rejects.toBeInstanceOf(Error);
      expect([index.asked.length, index.failures]).toEqual([1, [error]]);
      expect(index.repeats).toEqual(noRepeats());
    }
  });

  it.each([
    ['values', engineError('values_missing')],
    ['parts', absent()],
  ])('when the %s do not come before the deadline, or the caller has gone', async (_reason, error) => {
    const index = new Scripted({ fetches: true });
    const coming = Promise.withResolvers<void>();
    index.during = () => coming.promise;
    await expect(index.ask([error], { timeoutMs: 20 })).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    const caller = new AbortController();
    const asking = index.ask([error], { signal: caller.signal });
    caller.abort(new Error('gone'));
    await expect(asking).rejects.toThrow('gone');
    coming.resolve();
    expect(index.asked).toHaveLength(2);
    expect(index.repeats).toEqual(noRepeats());
  });

  it('when the index cannot be used any more', async () => {
    const index = new Scripted();
    const closing = (): void => {
      index.merge();
      index.usable = false;
    };
    await expect(index.ask([closing])).rejects.toThrow('opening again');
    expect(index.asked).toHaveLength(1);
  });
});

it('a failure to mend is the failure of the ask, and is not counted', async () => {
  const repeats = noRepeats();
  const ask = () => Promise.reject(new Error('asked'));
  await expect(askAgain(repeats, () => Promise.reject(new Error('mending')), ask)).rejects.toThrow('mending');
  expect(repeats).toEqual(noRepeats());
});

it('a caller who has gone already waits for nothing, and the failure of the work is handled', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    const gone = AbortSignal.abort(new Error('gone'));
    const waiting = before(performance.now() + 1_000, Promise.reject(new Error('work')), 'late', gone);
    await expect(waiting).rejects.toThrow('gone');
    await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
