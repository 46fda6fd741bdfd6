import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BatchPlan,
  type Entry,
  type Job,
  Scheduler,
  type SchedulerOptions,
} from '../../../src/encoder/scheduling/scheduler.ts';
import type { BatchKind } from '../../../src/encoder/inference/session-protocol.ts';

const options: SchedulerOptions = {
  documentBatchTokens: 100,
  sharedBatchTokens: 50,
  queryBatchTokens: 40,
  lengthStep: 1,
  runTokens: 5,
  lookAheadBatches: 8,
  queuedTokensMax: 1000,
  queuedRequestsMax: 4,
};
const room = { query: Infinity, document: Infinity, small: 0 };

/** A job of texts of given lengths. It notes its outcome. */
class NotedJob implements Job {
  readonly kind: BatchKind;
  readonly modelIndex: number;
  readonly tenantId: string;
  deadlineMs = Infinity;
  cancelled = false;
  isInternal = false;
  /** Entries that may be taken now. A slow reader lowers it. */
  allowed = Infinity;
  dropped: string | undefined;
  pending: Entry[];

  constructor(kind: BatchKind, lengths: readonly number[], tenantId = 'a', modelIndex = 0) {
    this.kind = kind;
    this.modelIndex = modelIndex;
    this.tenantId = tenantId;
    this.pending = lengths.map((length, position) => ({
      position,
      sequence: { ids: new Int32Array(length), attended: length, kept: undefined, rows: length },
    }));
  }

  get exhausted(): boolean {
    return this.pending.length === 0;
  }

  peek(offset: number): Entry | undefined {
    return offset < this.allowed ? this.pending[offset] : undefined;
  }

  take(entries: ReadonlySet<Entry>): void {
    this.pending = this.pending.filter((entry) => !entries.has(entry));
  }

  refuse(): void {}

  drop(reason: string): void {
    this.dropped = reason;
  }

  deliver(): void {
    throw new Error('the scheduler delivers nothing');
  }

  fail(): void {
    throw new Error('the scheduler fails nothing');
  }
}

function scheduler(
  { workers = 1, ...changes }: Partial<SchedulerOptions> & { readonly workers?: number } = {},
  jobs: readonly Job[] = [],
): Scheduler {
  const made = new Scheduler({ ...options, ...changes }, workers);
  for (const job of jobs) made.add(job);
  return made;
}

const lengthsOf = (plan: BatchPlan | undefined): number[] | undefined =>
  plan?.entries.map(({ entry }) => entry.sequence.ids.length).toSorted((a, b) => a - b);

describe('batches', () => {
  it('are sent at once, however little there is', () => {
    const plan = scheduler({}, [new NotedJob('document', [7])]).next(0, room);
    expect(plan).toMatchObject({ kind: 'document', paddedLength: 7 });
    expect(lengthsOf(plan)).toEqual([7]);
  });

  it('fill the padded budget with texts of similar length around the oldest', () => {
    const waiting = scheduler({}, [new NotedJob('document', [24, 90, 25, 3, 23, 25])]);
    expect(lengthsOf(waiting.next(0, room))).toEqual([23, 24, 25, 25]);
    expect(lengthsOf(waiting.next(0, room))).toEqual([90]);
    expect(lengthsOf(waiting.next(0, room))).toEqual([3]);
    expect(waiting.next(0, room)).toBeUndefined();
  });

  it('cost together as much as the cheapest cut of the sorted texts', () => {
    const costOf = (lengths: readonly number[]): number =>
      options.runTokens + Math.max(...lengths) * lengths.length;
    /** Tries every way to cut the texts. Each mask is one way. */
    const cheapest = (lengths: readonly number[]): number => {
      const sorted = lengths.toSorted((a, b) => a - b);
      let best = Infinity;
      for (let mask = 0; mask < 2 ** (sorted.length - 1); mask++) {
        const groups: number[][] = [[]];
        for (const [i, length] of sorted.entries()) {
          groups.at(-1)!.push(length);
          if (mask & (1 << i)) groups.push([]);
        }
        const cut = groups.filter((group) => group.length > 0);
        const legal = cut.every(
          (group) => group.length === 1 || Math.max(...group) * group.length <= options.documentBatchTokens,
        );
        if (legal)
          best = Math.min(
            best,
            cut.reduce((sum, group) => sum + costOf(group), 0),
          );
      }
      return best;
    };
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 }), (lengths) => {
        const waiting = scheduler({}, [new NotedJob('document', lengths)]);
        let cost = 0;
        for (let plan = waiting.next(0, room); plan !== undefined; plan = waiting.next(0, room)) {
          cost += costOf(lengthsOf(plan)!);
        }
        expect(cost).toBe(cheapest(lengths));
      }),
    );
  });

  it('fill the budget, with any padding, where a run is expensive', () => {
    const lengths = [20, 4, 4, 20];
    const cheap = scheduler({}, [new NotedJob('document', lengths)]);
    expect(lengthsOf(cheap.next(0, room))).toEqual([20, 20]);
    const dear = scheduler({ runTokens: 1000 }, [new NotedJob('document', lengths)]);
    expect(lengthsOf(dear.next(0, room))).toEqual([4, 4, 20, 20]);
  });

  it('share the last texts out among the workers', () => {
    const lengths = [40, 40, 40, 40];
    const one = scheduler({ documentBatchTokens: 160 }, [new NotedJob('document', lengths)]);
    expect(lengthsOf(one.next(0, room))).toEqual(lengths);
    const two = scheduler({ documentBatchTokens: 160, workers: 2 }, [new NotedJob('document', lengths)]);
    expect(lengthsOf(two.next(0, room))).toEqual([40, 40]);
    // A batch that costs less than a dozen runs is not cut any further.
    const little = scheduler({ documentBatchTokens: 160, workers: 2 }, [new NotedJob('document', [30, 30])]);
    expect(lengthsOf(little.next(0, room))).toEqual([30, 30]);
  });

  it('look ahead no further than the window, however well later texts would fit', () => {
    const lengths = [30, 80, 80, 30, 30];
    // A look-ahead of 110 tokens holds the first two texts. The third goes beyond it.
    const near = scheduler({ lookAheadBatches: 1.1 }, [new NotedJob('document', lengths)]);
    expect(lengthsOf(near.next(0, room))).toEqual([30]);
    const far = scheduler({}, [new NotedJob('document', lengths)]);
    expect(lengthsOf(far.next(0, room))).toEqual([30, 30, 30]);
  });

  it('always hold the oldest entry that waits, so that none is passed over for ever', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 150 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.array(lengths, { minLength: 1, maxLength: 4 }), (given) => {
        const jobs = given.map((each) => new NotedJob('document', each));
        const waiting = scheduler({}, jobs);
        for (;;) {
          const oldest = jobs.find((job) => !job.exhausted)?.pending[0];
          const plan = waiting.next(0, room);
          if (plan === undefined) break;
          expect(plan.entries.map(({ entry }) => entry)).toContain(oldest);
        }
        expect(jobs.every((job) => job.exhausted)).toBe(true);
      }),
    );
  });

  it('hold a text longer than the budget alone', () => {
    const waiting = scheduler({}, [new NotedJob('document', [250, 250])]);
    expect(lengthsOf(waiting.next(0, room))).toEqual([250]);
    expect(lengthsOf(waiting.next(0, room))).toEqual([250]);
  });

  it('count the padding of the length step', () => {
    const waiting = scheduler({ lengthStep: 16 }, [new NotedJob('document', [17, 17, 17, 17])]);
    const plan = waiting.next(0, room);
    expect(plan?.paddedLength).toBe(32);
    expect(plan?.entries).toHaveLength(3);
  });

  it('never mix models or kinds', () => {
    const waiting = scheduler({}, [
      new NotedJob('document', [5], 'a', 0),
      new NotedJob('document', [5], 'a', 1),
      new NotedJob('query', [5], 'a', 0),
    ]);
    const plans = [1, 2, 3].map(() => waiting.next(0, room));
    expect(plans.map((plan) => plan?.kind)).toEqual(['query', 'document', 'document']);
    expect(plans.every((plan) => plan?.entries.length === 1)).toBe(true);
  });

  it('take nothing from a job whose reader is behind, and go on with the others', () => {
    const behind = new NotedJob('document', [5, 5], 'a');
    behind.allowed = 0;
    const waiting = scheduler({}, [behind, new NotedJob('document', [6], 'b')]);
    expect(lengthsOf(waiting.next(0, room))).toEqual([6]);
    expect(waiting.next(0, room)).toBeUndefined();
    behind.allowed = 1;
    expect(lengthsOf(waiting.next(0, room))).toEqual([5]);
  });

  it('together hold every entry exactly once, within the budget', () => {
    const jobs = fc.array(
      fc.record({
        kind: fc.constantFrom<BatchKind>('query', 'document'),
        lengths: fc.array(fc.integer({ min: 1, max: 150 }), { minLength: 1, maxLength: 20 }),
        tenantId: fc.constantFrom('a', 'b', 'c'),
        model: fc.integer({ min: 0, max: 1 }),
      }),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(jobs, (given) => {
        const made = given.map(
          ({ kind, lengths, tenantId, model }) => new NotedJob(kind, lengths, tenantId, model),
        );
        const waiting = scheduler({}, made);
        const seen = new Set<Entry>();
        for (let plan = waiting.next(0, room); plan !== undefined; plan = waiting.next(0, room)) {
          const budget = plan.kind === 'query' ? options.queryBatchTokens : options.documentBatchTokens;
          if (plan.entries.length > 1) {
            expect(plan.paddedLength * plan.entries.length).toBeLessThanOrEqual(budget);
          }
          for (const { job, entry } of plan.entries) {
            expect(seen).not.toContain(entry);
            expect(entry.sequence.ids.length).toBeLessThanOrEqual(plan.paddedLength);
            expect([job.kind, job.modelIndex]).toEqual([plan.kind, plan.modelIndex]);
            seen.add(entry);
          }
        }
        expect(seen.size).toBe(given.reduce((sum, { lengths }) => sum + lengths.length, 0));
      }),
    );
  });
});

describe('a lone plan', () => {
  const next = (jobs: readonly Job[], isIdle = true) => scheduler({}, jobs).next(0, room, isIdle);

  it('is a short query, while nothing runs and nothing else waits', () => {
    expect(next([new NotedJob('query', [128])])).toMatchObject({ lone: true });
    expect(next([new NotedJob('query', [128])], false)).toMatchObject({ lone: false });
    expect(next([new NotedJob('query', [129])])).toMatchObject({ lone: false });
    expect(next([new NotedJob('query', [9]), new NotedJob('query', [30])])).toMatchObject({ lone: false });
    expect(next([new NotedJob('query', [9]), new NotedJob('document', [9])])).toMatchObject({ lone: false });
  });

  it('is never of documents', () => {
    expect(next([new NotedJob('document', [9])])).toMatchObject({ kind: 'document', lone: false });
  });
});

describe('priorities', () => {
  it('put queries before documents that came earlier', () => {
    const waiting = scheduler({}, [new NotedJob('document', [5]), new NotedJob('query', [5])]);
    expect(waiting.next(0, room)?.kind).toBe('query');
    expect(waiting.next(0, room)?.kind).toBe('document');
  });

  it('send only kinds that there is room for', () => {
    const waiting = scheduler({}, [new NotedJob('document', [5]), new NotedJob('query', [5])]);
    expect(waiting.next(0, { ...room, query: 0 })?.kind).toBe('document');
    expect(waiting.next(0, { ...room, query: 0 })).toBeUndefined();
  });

  it('leave a long query to another worker, and run a short one of whichever tenant', () => {
    const waiting = scheduler({}, [new NotedJob('query', [60]), new NotedJob('query', [5, 5], 'b')]);
    expect(lengthsOf(waiting.next(0, { query: 20, document: 0, small: 0 }))).toEqual([5, 5]);
    expect(waiting.next(0, { query: 20, document: 0, small: 0 })).toBeUndefined();
    expect(lengthsOf(waiting.next(0, room))).toEqual([60]);
  });

  it('end the requests of a tenant one after another, not all together', () => {
    const lengths = Array.from({ length: 12 }, () => 25);
    const jobs = [0, 1, 2].map(() => new NotedJob('document', lengths));
    const waiting = scheduler({}, jobs);
    const ended: number[] = [];
    for (let batch = 1; batch <= 9; batch++) {
      waiting.next(0, room);
      jobs.forEach((job, at) => {
        if (job.exhausted && !ended.includes(at)) ended.push(at);
      });
      expect(ended).toEqual([0, 1, 2].slice(0, Math.floor(batch / 3)));
    }
  });

  it('serve tenants in turn by tokens, not by the order or number of their requests', () => {
    const waiting = scheduler({}, [
      new NotedJob(
        'document',
        Array.from({ length: 50 }, () => 100),
        'greedy',
      ),
      new NotedJob(
        'document',
        Array.from({ length: 50 }, () => 100),
        'greedy',
      ),
      new NotedJob('document', [100, 100, 100], 'modest'),
    ]);
    const order = Array.from({ length: 6 }, () => waiting.next(0, room)?.entries[0]?.job.tenantId);
    expect(order.filter((tenant) => tenant === 'modest')).toHaveLength(3);
  });

  it('give a tenant that comes late its turn at once, and no credit for the time before', () => {
    const waiting = scheduler({}, [
      new NotedJob(
        'document',
        Array.from({ length: 50 }, () => 100),
        'early',
      ),
    ]);
    for (let i = 0; i < 10; i++) waiting.next(0, room);
    waiting.add(
      new NotedJob(
        'document',
        Array.from({ length: 50 }, () => 100),
        'late',
      ),
    );
    const order = Array.from({ length: 8 }, () => waiting.next(0, room)?.entries[0]?.job.tenantId);
    expect(order.slice(0, 2)).toContain('late');
    expect(order.filter((tenant) => tenant === 'late').length).toBeLessThanOrEqual(5);
    expect(order.filter((tenant) => tenant === 'early').length).toBeGreaterThanOrEqual(3);
  });
});

describe('while documents of several tenants want to run', () => {
  const many = (tenantId: string) => new NotedJob('document', [25, 25, 25, 25, 25, 25, 25, 25], tenantId);
  const small = { query: 0, document: 0, small: 30 };

  it('batches are smaller, and are full again when one tenant is left', () => {
    const waiting = scheduler({}, [many('a')]);
    const first = waiting.next(0, room)!;
    expect(lengthsOf(first)).toEqual([25, 25, 25, 25]);
    waiting.began(first);
    expect(waiting.isContended).toBe(false);
    waiting.add(new NotedJob('document', [25, 25], 'b'));
    expect(waiting.isContended).toBe(true);
    const second = waiting.next(0, room)!;
    expect(second.entries.map(({ job }) => job.tenantId)).toEqual(['b', 'b']);
    waiting.began(second);
    waiting.ended(first);
    expect(waiting.isContended).toBe(true);
    expect(lengthsOf(waiting.next(0, room))).toEqual([25, 25]);
    waiting.ended(second);
    expect(waiting.isContended).toBe(false);
    expect(lengthsOf(waiting.next(0, room))).toEqual([25, 25]);
  });

  it('a tenant none of whose documents run takes the worker for small batches', () => {
    const waiting = scheduler({}, [many('a')]);
    expect(waiting.next(0, { ...room, document: 0, small: 30 })).toMatchObject({ place: 'small' });
    waiting.began(waiting.next(0, room)!);
    expect(waiting.next(0, small)).toBeUndefined();
    waiting.add(new NotedJob('document', [31, 5], 'b'));
    waiting.add(new NotedJob('document', [20, 20, 5], 'c'));
    const plan = waiting.next(0, small)!;
    expect(plan).toMatchObject({ kind: 'document', place: 'small' });
    expect(plan.entries.map(({ job, entry }) => [job.tenantId, entry.position])).toEqual([['c', 0]]);
    waiting.began(plan);
    expect(waiting.next(0, small)).toBeUndefined();
    waiting.ended(plan);
    expect(waiting.next(0, small)?.entries[0]?.job.tenantId).toBe('c');
  });

  it('queries of other tenants change nothing', () => {
    const waiting = scheduler({}, [many('a'), new NotedJob('query', [5], 'b')]);
    expect(waiting.isContended).toBe(false);
  });
});

describe('dead work', () => {
  it('is dropped before it runs, with the reason, and counted', () => {
    const gone = new NotedJob('document', [5]);
    const late = new NotedJob('query', [5]);
    const alive = new NotedJob('query', [6]);
    gone.cancelled = true;
    late.deadlineMs = 1000;
    const waiting = scheduler({}, [gone, late, alive]);
    expect(lengthsOf(waiting.next(1000, room))).toEqual([6]);
    expect(waiting.next(1000, room)).toBeUndefined();
    expect([gone.dropped, late.dropped, alive.dropped]).toEqual(['cancelled', 'expired', undefined]);
    expect(waiting.statistics()).toMatchObject({ cancelled: 1, expired: 1, batches: 1, tokens: 6 });
  });

  it('of the encoder itself is not in the statistics, run or dropped', () => {
    const dead = new NotedJob('document', [5]);
    const run = new NotedJob('document', [7]);
    const asked = new NotedJob('document', [9]);
    dead.isInternal = run.isInternal = dead.cancelled = true;
    const waiting = scheduler({}, [dead, run]);
    expect(lengthsOf(waiting.next(0, room))).toEqual([7]);
    expect(waiting.statistics()).toMatchObject({ cancelled: 0, batches: 0, tokens: 0, paddedTokens: 0 });
    run.pending = new NotedJob('document', [7]).pending;
    for (const job of [run, asked]) waiting.add(job);
    expect(lengthsOf(waiting.next(0, room))?.toSorted()).toEqual([7, 9]);
    expect(waiting.statistics()).toMatchObject({ batches: 1, tokens: 9, paddedTokens: 9 });
  });

  it('is dropped between its batches too, and leaves its place to the others', () => {
    const gone = new NotedJob('document', [90, 90]);
    const alive = new NotedJob('document', [90]);
    const waiting = scheduler({}, [gone, alive]);
    expect(waiting.next(0, room)?.entries[0]?.job).toBe(gone);
    gone.cancelled = true;
    expect(waiting.next(0, room)?.entries.map(({ job }) => job)).toEqual([alive]);
    expect(waiting.next(0, room)).toBeUndefined();
    expect(gone.dropped).toBe('cancelled');
  });
});

describe('admission', () => {
  it('refuses requests over the bound and admits again when one ends', () => {
    const waiting = scheduler();
    const held = Array.from({ length: 4 }, () => waiting.reserve());
    expect(waiting.reserve()).toBeUndefined();
    held[0]?.release();
    held[0]?.release();
    expect(waiting.reserve()).toBeDefined();
    expect(waiting.reserve()).toBeUndefined();
    expect(waiting.statistics().rejected).toBe(2);
  });

  it('refuses tokens over the bound', () => {
    const waiting = scheduler();
    expect(waiting.reserve()?.grow(900)).toBe(true);
    const second = waiting.reserve();
    expect(second?.grow(101)).toBe(false);
    expect(second?.grow(100)).toBe(true);
    expect(waiting.queuedTokens).toBe(1000);
  });

  it('admits one request of any size when nothing else waits', () => {
    const waiting = scheduler();
    const alone = waiting.reserve();
    expect(alone?.grow(5000)).toBe(true);
    expect(alone?.grow(5000)).toBe(true);
    expect(waiting.reserve()?.grow(1)).toBe(false);
    alone?.shrink(4000);
    alone?.release();
    expect(waiting.queuedTokens).toBe(0);
  });

  it('accounts for every token, in any order of events', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ grow: fc.integer({ min: 0, max: 400 }), shrink: fc.integer({ min: 0, max: 500 }) }),
          {
            maxLength: 30,
          },
        ),
        (events) => {
          const waiting = scheduler({ queuedRequestsMax: 100 });
          const held = events.map(({ grow, shrink }) => {
            const reservation = waiting.reserve()!;
            reservation.grow(grow);
            reservation.shrink(shrink);
            return reservation;
          });
          expect(waiting.queuedTokens).toBeGreaterThanOrEqual(0);
          for (const reservation of held) reservation.release();
          expect(waiting.statistics()).toMatchObject({ queuedTokens: 0, queuedRequests: 0 });
        },
      ),
    );
  });
});
