/** The bound on waits in front of a simulated server, which is fair between tenants and has a fixed speed. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PromisedWait } from '../../../src/service/limits/promised-wait.ts';
import { seededRandom } from '../../../bench/lib/seeded-random.ts';

const deadlineMs = 10_000;
const promisedMs = 1_000;
const unbounded = { requestsMin: 0, waitMsMax: Infinity, smoothing: 0.1 };

interface Tenant {
  readonly id: string;
  /** Requests a second. */
  readonly perSecond: number;
}

interface Outcome {
  readonly waitsMs: number[];
  refused: number;
  late: number;
}

interface Request {
  left: number;
  readonly cameAt: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Sends requests of 0.5 to 1.5 units of work to a server of `unitsPerSecond`, which drops requests past their deadlines. */
async function simulate(
  tenants: readonly Tenant[],
  { unitsPerSecond, seconds, bound }: { unitsPerSecond: number; seconds: number; bound?: typeof unbounded },
): Promise<{ readonly outcomes: readonly Outcome[]; readonly left: number }> {
  const random = seededRandom(7);
  let now = 0;
  const wait = new PromisedWait(() => now, bound);
  const outcomes = tenants.map((): Outcome => ({ waitsMs: [], refused: 0, late: 0 }));
  const queues = tenants.map((): Request[] => []);
  const send = (at: number): void => {
    const cameAt = now;
    const outcome = outcomes[at]!;
    const work = 0.5 + random();
    wait
      .keep(
        tenants[at]!.id,
        { requests: 1, work },
        () =>
          new Promise<void>((resolve, reject) => queues[at]!.push({ left: work, cameAt, resolve, reject })),
      )
      .then(
        () => outcome.waitsMs.push(now - cameAt),
        () => {
          if (now === cameAt) outcome.refused++;
          else outcome.late++;
        },
      );
  };
  let next = 0;
  for (; now < seconds * 1000 || queues.some((queue) => queue.length > 0); now++) {
    const open = now < seconds * 1000;
    for (const [at, { perSecond }] of tenants.entries()) {
      for (let due = open ? perSecond / 1000 : 0; due > 0; due--) if (random() < due) send(at);
    }
    for (let units = unitsPerSecond / 1000; units > 0 && queues.some((queue) => queue.length > 0);) {
      const queue = queues[next]!;
      const [first] = queue;
      if (first === undefined || now - first.cameAt >= deadlineMs) {
        queue.shift()?.reject(new Error('late'));
        if (first === undefined) next = (next + 1) % queues.length;
        continue;
      }
      const done = Math.min(first.left, units);
      first.left -= done;
      units -= done;
      if (first.left > 1e-9) continue;
      queue.shift();
      next = (next + 1) % queues.length;
      first.resolve();
    }
    await turn();
  }
  return { outcomes, left: wait.size };
}

const longest = (values: readonly number[]): number =>
  values.reduce((most, value) => Math.max(most, value), 0);

it.each([3, 30])(
  'answers in time what it admits at %i times the rate, and wastes nothing',
  async (factor) => {
    const { outcomes, left } = await simulate([{ id: 'a', perSecond: factor * 200 }], {
      unitsPerSecond: 200,
      seconds: 12,
    });
    const [outcome] = outcomes as [Outcome];
    expect(outcome.late).toBe(0);
    expect(outcome.waitsMs.length).toBeGreaterThan(0.97 * 200 * 12);
    expect(longest(outcome.waitsMs)).toBeLessThan(1.5 * promisedMs);
    expect(left).toBe(0);
  },
);

it('keeps requests from their deadlines, which they miss without it', async () => {
  const { outcomes } = await simulate([{ id: 'a', perSecond: 600 }], {
    unitsPerSecond: 200,
    seconds: 20,
    bound: unbounded,
  });
  expect(outcomes[0]!.late).toBeGreaterThan(1_000);
  expect(longest(outcomes[0]!.waitsMs)).toBeGreaterThan(0.9 * deadlineMs);
});

it('refuses nobody for what another tenant sends', async () => {
  const { outcomes } = await simulate(
    [
      { id: 'flood', perSecond: 2_000 },
      { id: 'steady', perSecond: 60 },
    ],
    { unitsPerSecond: 200, seconds: 12 },
  );
  const [flood, steady] = outcomes as [Outcome, Outcome];
  expect(flood.refused).toBeGreaterThan(10_000);
  expect(steady).toMatchObject({ refused: 0, late: 0 });
  expect(longest(steady.waitsMs)).toBeLessThan(promisedMs);
});

const one = { requests: 1, work: 1 };

it('refuses none of few requests at a time, however slow they are', async () => {
  let now = 0;
  const wait = new PromisedWait(() => now);
  const { promise, resolve } = Promise.withResolvers<void>();
  await Promise.race([
    wait.keep('a', one, async () => {
      now += 5 * promisedMs;
    }),
    ...Array.from({ length: 63 }, () => wait.keep('a', one, () => promise)),
  ]);
  const last = wait.keep('a', one, () => promise);
  await expect(wait.keep('a', one, () => promise)).rejects.toMatchObject({ code: 'service_unavailable' });
  resolve();
  await last;
});

it('says when to come again, and gives the place of a failed request back', async () => {
  let now = 0;
  const wait = new PromisedWait(() => now, { requestsMin: 1, waitMsMax: 100, smoothing: 1 });
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const answers = [wait.keep('a', one, () => first.promise), wait.keep('a', one, () => second.promise)];
  now = 90;
  first.resolve();
  await answers[0];
  await expect(wait.keep('a', one, async () => undefined)).rejects.toMatchObject({
    code: 'service_unavailable',
    retryAfterSeconds: 1,
  });
  second.reject(new Error('it failed'));
  await expect(answers[1]).rejects.toThrow('it failed');
  expect(wait.size).toBe(0);
  await wait.keep('a', one, async () => undefined);
});

it('counts a request of several searches as so many', async () => {
  let now = 0;
  const wait = new PromisedWait(() => now);
  const { promise, resolve } = Promise.withResolvers<void>();
  await wait.keep('a', one, async () => {
    now += 1;
  });
  const several = [wait.keep('a', { requests: 32, work: 32 }, () => promise)];
  await Promise.race([
    ...several,
    wait.keep('a', one, async () => {
      now += 40_000;
    }),
  ]);
  several.push(wait.keep('a', { requests: 32, work: 32 }, () => promise));
  await expect(wait.keep('a', one, () => promise)).rejects.toMatchObject({ code: 'service_unavailable' });
  resolve();
  await Promise.all(several);
});
