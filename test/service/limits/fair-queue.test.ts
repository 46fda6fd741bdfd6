/** The queue that is fair by work: in which order it serves, what it drops, and what it forgets. */
import * as fc from 'fast-check';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../src/service/limits/fair-queue.ts';
import { tenantWorkMax } from '../../../src/service/limits/work.ts';
import { rounds } from '../../rounds.ts';

/** Pieces that run until the test ends them, in the order of their starts. */
class Bench {
  readonly started: string[] = [];
  readonly #ends = new Map<string, () => void>();
  readonly queue: FairQueue;

  constructor(queue: FairQueue) {
    this.queue = queue;
  }

  /** `tenant` is the first letter of the name. */
  ask(name: string, work: number, more: { deadlineMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    return this.queue.run(name.slice(0, 1), { work, ...more }, async () => {
      this.started.push(name);
      await new Promise<void>((resolve) => this.#ends.set(name, resolve));
    });
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)?.();
    await turn();
  }
}

describe('a fair queue', () => {
  it('says whether a piece waits for its turn', async () => {
    const bench = new Bench(new FairQueue({ runningMax: 1 }));
    const done = ['a1', 'b1'].map((name) => bench.ask(name, 1));
    await turn();
    expect(bench.queue.hasWaiting).toBe(true);
    await bench.end('a1');
    expect(bench.queue.hasWaiting).toBe(false);
    await bench.end('b1');
    await Promise.all(done);
  });

  it('serves a tenant that had little before one that had much, whoever came first', async () => {
    const bench = new Bench(new FairQueue({ runningMax: 1 }));
    const done = ['a1', 'a2', 'a3', 'a4'].map((name) => bench.ask(name, 50));
    done.push(bench.ask('b1', 10), bench.ask('b2', 10));
    await turn();
    for (const name of ['a1', 'b1', 'b2', 'a2', 'a3', 'a4']) {
      expect(bench.started.at(-1)).toBe(name);
      await bench.end(name);
    }
    await Promise.all(done);
    expect(bench.queue.size).toBe(0);
  });

  it('divides by work: a tenant of pieces five times as large gets a fifth of the turns', async () => {
    const bench = new Bench(new FairQueue({ runningMax: 1 }));
    const done: Promise<void>[] = [];
    for (let n = 0; n < 30; n++) done.push(bench.ask(`a${n}`, 50), bench.ask(`b${n}`, 10));
    await turn();
    for (let n = 0; n < 24; n++) await bench.end(bench.started.at(-1)!);
    const ofA = bench.started.filter((name) => name.startsWith('a')).length;
    expect(ofA).toBeGreaterThanOrEqual(4);
    expect(ofA).toBeLessThanOrEqual(5);
    while (bench.started.length < 60) await bench.end(bench.started.at(-1)!);
    await bench.end(bench.started.at(-1)!);
    await Promise.all(done);
  });

  it('counts a piece that took longer than its estimate as what it took', async () => {
    const queue = new FairQueue({ runningMax: 1 });
    const order: string[] = [];
    const slow = async (): Promise<void> => {
      order.push('a');
      const end = performance.now() + 30;
      while (performance.now() < end);
    };
    const short = async (): Promise<void> => {
      order.push('b');
    };
    const places = { a: queue.enter('a', 3), b: queue.enter('b', 30) };
    await Promise.all([
      places.a.run({ work: 1 }, slow),
      places.a.run({ work: 1 }, slow),
      places.b.run({ work: 20 }, short),
    ]);
    await Promise.all([
      places.a.run({ work: 1 }, slow),
      places.a.run({ work: 1 }, slow),
      places.b.run({ work: 10 }, short),
    ]);
    expect(order.lastIndexOf('b')).toBeLessThan(order.lastIndexOf('a'));
  });

  it('keeps a place from long pieces, so that a short one finds one', async () => {
    const bench = new Bench(new FairQueue({ runningMax: 3, longRunningMax: 2 }));
    const long = ['a1', 'b1', 'c1'].map((name) => bench.ask(name, 5_000));
    const short = bench.ask('d1', 5);
    await turn();
    expect(bench.started).toEqual(['a1', 'b1', 'd1']);
    await bench.end('d1');
    await bench.end('a1');
    expect(bench.started.at(-1)).toBe('c1');
    await bench.end('b1');
    await bench.end('c1');
    await Promise.all([...long, short]);
  });

  it('drops pieces that wait past their deadlines, and pieces that nobody waits for', async () => {
    const bench = new Bench(new FairQueue({ runningMax: 1 }));
    const first = bench.ask('a1', 1);
    const leaving = new AbortController();
    const late = bench.ask('b1', 1, { deadlineMs: Date.now() + 10 });
    const left = bench.ask('c1', 1, { signal: leaving.signal });
    const kept = bench.ask('d1', 1);
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await expect(late).rejects.toMatchObject({ code: 'service_unavailable', retryAfterSeconds: 1 });
    await bench.end('a1');
    await bench.end('d1');
    await Promise.all([first, kept]);
    expect(bench.started).toEqual(['a1', 'd1']);
    expect(bench.queue.size).toBe(0);
  });

  it('refuses at once a request that does not fit behind the others of its tenant, and says how much they cost', async () => {
    const queue = new FairQueue({ runningMax: 1 });
    const first = queue.enter('a', tenantWorkMax - 10);
    expect(() => queue.enter('a', 11)).toThrow(
      new RegExp(`11 units.* ${tenantWorkMax - 10}, and .* ${tenantWorkMax}$`),
    );
    // Another tenant does not wait for it.
    queue.enter('b', tenantWorkMax).leave();
    first.leave();
    first.leave();
    queue.enter('a', 11).leave();
    // A request above the bound runs if its tenant has no other.
    queue.enter('c', 2 * tenantWorkMax).leave();
    expect(queue.size).toBe(0);
  });

  it('runs everything once and no more at a time than it may, whatever comes', async () => {
    const piece = fc.record({
      tenant: fc.constantFrom('a', 'b', 'c', 'd'),
      work: fc.integer({ min: 1, max: 300 }),
      turns: fc.integer({ min: 0, max: 3 }),
      leaves: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        async (pieces, runningMax) => {
          const longRunningMax = Math.max(1, runningMax - 1);
          const queue = new FairQueue({ runningMax, longRunningMax });
          let [running, long, ran] = [0, 0, 0];
          const asked = pieces.map(async ({ tenant, work, turns, leaves }) => {
            const leaving = new AbortController();
            const done = queue.run(tenant, { work, signal: leaving.signal }, async () => {
              running += 1;
              if (work > 100) long += 1;
              ran += 1;
              expect(running).toBeLessThanOrEqual(runningMax);
              expect(long).toBeLessThanOrEqual(longRunningMax);
              for (let n = 0; n < turns; n++) await turn();
              running -= 1;
              if (work > 100) long -= 1;
            });
            if (leaves) setTimeout(() => leaving.abort(new Error('gone')), 0);
            return done.then(
              () => true,
              () => false,
            );
          });
          const ended = await Promise.all(asked);
          expect(ended.filter(Boolean)).toHaveLength(ran);
          pieces.forEach(({ leaves }, place) => expect(leaves || ended[place]).toBe(true));
          expect([running, queue.size]).toEqual([0, 0]);
        },
      ),
      { numRuns: rounds({ short: 60, nightly: 3_000 }) },
    );
  });
});
