/** The times of the stages of a request. Other processes send theirs with their replies. */
import { assertInvariant } from '../errors.ts';

export interface Stage {
  /** The stage that this one is a part of. */
  readonly within?: string;
  /** By `performance.now`. */
  readonly startedAt: number;
  readonly ms: number;
}

/** The stage between the body of a request and its answer. The stages of the operation are parts of it. */
export const serviceStage = 'service';

export class StageTimings {
  readonly #stages = new Map<string, Stage>();

  /** Notes a stage. If it was noted before, its time is added, and its start stays. */
  note(name: string, stage: Stage): void {
    const noted = this.#stages.get(name);
    this.#stages.set(name, noted === undefined ? stage : { ...noted, ms: noted.ms + stage.ms });
  }

  /** Takes a stage as another thread has it so far. */
  set(name: string, stage: Stage): void {
    this.#stages.set(name, stage);
  }

  /** Notes parts whose starts are unknown: they count as one after the other, from the start of `whole`. */
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
  entries(): MapIterator<[name: string, stage: Stage]> {
    return this.#stages.entries();
  }
}
