/** What a request's time went into. Durations come from whoever did the work; those of other processes come with their replies. */
import { assertInvariant } from '../errors.ts';

export interface Stage {
  /** The stage that it is a part of. */
  readonly within?: string;
  /** As `performance.now()` tells it. */
  readonly startedAt: number;
  readonly ms: number;
}

/** What an operation does between its body and its answer; its stages are parts of it. */
export const serviceStage = 'service';

export class StageTimings {
  readonly #stages = new Map<string, Stage>();

  /** A stage that is noted again adds its time to what it had, and keeps its start. */
  note(name: string, stage: Stage): void {
    const noted = this.#stages.get(name);
    this.#stages.set(name, noted === undefined ? stage : { ...noted, ms: noted.ms + stage.ms });
  }

  /** Parts that say how long they took and not when: they stand one after another, from the start of `whole`. */
  noteParts(whole: string, parts: Readonly<Record<string, number>>): void {
    const noted = this.#stages.get(whole);
    assertInvariant(noted !== undefined, 'a stage is noted before its parts');
    let { startedAt } = noted;
    for (const [name, ms] of Object.entries(parts)) {
      this.note(name, { within: whole, startedAt, ms });
      startedAt += ms;
    }
  }

  msOf(name: string): number {
    return this.#stages.get(name)?.ms ?? 0;
  }

  /** In the order in which they were noted first. */
  entries(): readonly (readonly [name: string, stage: Stage])[] {
    return [...this.#stages];
  }
}
