/** Seeded open-loop arrivals: when each request of a step is due, and which operation it is. */
import { seededRandom } from '../lib/seeded-random.ts';

export type Operation = 'search' | 'upsert' | 'score';

export type Mix = Readonly<Record<Operation, number>>;

export interface Arrival {
  /** Milliseconds after the start of the step. */
  readonly dueMs: number;
  readonly operation: Operation;
  /** Uniform in [0, 1): picks the request's text. */
  readonly pick: number;
}

export interface ScheduleOptions {
  readonly ratePerSecond: number;
  readonly durationMs: number;
  readonly mix: Mix;
  readonly seed: number;
}

/** A Poisson process: exponential gaps, independent of how fast anything is answered. */
export function schedule(options: ScheduleOptions): readonly Arrival[] {
  const random = seededRandom(options.seed);
  const arrivals: Arrival[] = [];
  let dueMs = 0;
  for (;;) {
    dueMs += (-Math.log(1 - random()) / options.ratePerSecond) * 1000;
    if (dueMs >= options.durationMs) return arrivals;
    arrivals.push({ dueMs, operation: pickOperation(options.mix, random()), pick: random() });
  }
}

/** `search=8,upsert=1,score=1` -> shares; omitted operations are 0. */
export function parseMix(text: string): Mix {
  const mix: Record<Operation, number> = { search: 0, upsert: 0, score: 0 };
  for (const part of text.split(',')) {
    const [name = '', share = ''] = part.split('=');
    if (!(name in mix) || !(Number(share) >= 0))
      throw new Error(`bad mix: ${part} (search=N,upsert=N,score=N)`);
    mix[name as Operation] = Number(share);
  }
  if (mix.search + mix.upsert + mix.score <= 0) throw new Error('bad mix: nothing to do');
  return mix;
}

function pickOperation(mix: Mix, uniform: number): Operation {
  const point = uniform * (mix.search + mix.upsert + mix.score);
  if (point < mix.search) return 'search';
  return point < mix.search + mix.upsert ? 'upsert' : 'score';
}
