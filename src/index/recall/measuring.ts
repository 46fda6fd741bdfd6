/**
 * Decides which searches of a process are measured: a random share of them, one at a time, within a share of the processor time, and none
 * while searches wait. The rest after a measured search keeps it within that time.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { inSlices, type Sliced } from '../slices.ts';

/** A measured search that pauses because others wait looks again after so long. */
const pauseMs = 10;
/** After so many pauses it goes on for a slice. */
const pausesMax = 100;

export interface RecallSettings {
  /** The least recall of the best ten at the default `candidate_k`; 0 = recall is not measured. */
  readonly target: number;
  /** The share of searches that are measured. */
  readonly share: number;
  /** The same while an index has few comparisons since its last large change. */
  readonly shareOfNew: number;
  /** The share of the processor time that may be used. */
  readonly load: number;
  readonly random: () => number;
  readonly nowMs: () => number;
}

export const defaultRecallSettings: RecallSettings = {
  target: 0.98,
  share: 0.001,
  shareOfNew: 0.1,
  load: 0.01,
  random: Math.random,
  nowMs: () => performance.now(),
};

export interface MeasuringDeps {
  readonly settings: RecallSettings;
  /** Threads of the engine. */
  readonly threads: number;
  readonly searchesWait: () => boolean;
}

export class Measuring {
  readonly #deps: MeasuringDeps;
  #measures = false;
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(deps: MeasuringDeps) {
    this.#deps = deps;
  }

  get settings(): RecallSettings {
    return this.#deps.settings;
  }

  /** Whether no search waits. */
  get mayRun(): boolean {
    return !this.#deps.searchesWait();
  }

  /** Whether a search is to be measured. */
  chooses(isNew: boolean): boolean {
    const { target, share, shareOfNew, random, nowMs } = this.settings;
    if (target === 0 || random() >= (isNew ? shareOfNew : share)) return false;
    return !this.#measures && nowMs() >= this.#restsUntilMs && this.mayRun;
  }

  /** Runs a search slice by slice, and pauses before each while others wait. */
  async inTurns<T>(begin: () => Sliced<T>): Promise<T> {
    return await inSlices(begin, async (slice) => {
      for (let pauses = 0; pauses < pausesMax && !this.mayRun; pauses += 1) await pause(pauseMs);
      return await slice();
    });
  }

  /** Measures a chosen search. `work` resolves to the processor time that it took. If it fails, all of its time counts. */
  async run(work: () => Promise<number>): Promise<void> {
    const { load, nowMs } = this.settings;
    const startedAt = nowMs();
    let cpuMs: number | undefined;
    this.#measures = true;
    try {
      cpuMs = await work();
    } finally {
      this.#measures = false;
      cpuMs ??= nowMs() - startedAt;
      this.#restsUntilMs = startedAt + cpuMs / (load * this.#deps.threads);
    }
  }
}
