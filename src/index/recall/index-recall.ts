/**
 * The recall of one open index. A measured search runs twice more in the background, on the same snapshot: as it would by default, and exactly. The
 * comparison of the two moves the breadth, which all searches of the index use. Nobody is charged, and the query is forgotten afterwards.
 *
 * All of it is derived data. An index that has lost it begins again.
 */
import { hasEngineCode } from '../engine/engine-errors.ts';
import type { NativeSearch, NativeSearchResult, SegmentInfo } from '../engine/native.ts';
import { nextBreadth, safeBreadth } from './breadth.ts';
import { comparisonsWith, foundShare, recallAt, type Comparison, type Estimate } from './estimate.ts';
import type { Measuring } from './measuring.ts';

/** The default of a search for ten results. */
const candidateKDefault = 200;
const resultsCompared = 100;
/** The comparisons that count. With fewer the index is new. */
const comparisonsMax = 300;
/** Comparisons between two looks at the breadth. */
const lookEvery = 25;
const sizeLookMs = 1_000;
const timeoutMs = 30_000;

/** The state of one index that is saved, as plain data. */
export interface RecallState {
  readonly breadth: number;
  /** Oldest first, since the last large change. */
  readonly comparisons: readonly Comparison[];
  /** As they were at the last large change. */
  readonly chunks: number;
  readonly codebooks: readonly string[];
}

export interface RecallReport {
  readonly breadth: number;
  readonly comparisons: number;
  readonly at10: Estimate;
  readonly at100: Estimate;
}

export interface BreadthMove {
  readonly from: number;
  readonly to: number;
  /** The recall of the best ten with the breadth before, from so many comparisons. */
  readonly at10: Estimate;
  readonly comparisons: number;
  readonly target: number;
}

export interface IndexRecallDeps {
  readonly measuring: Measuring;
  readonly segments: () => readonly SegmentInfo[];
  readonly ask: (search: NativeSearch) => Promise<NativeSearchResult>;
  /** How many times records have moved. A comparison across a move is not valid. */
  readonly moves: () => number;
  readonly known?: RecallState | undefined;
  readonly onMove: (move: BreadthMove) => void;
  readonly save?: (state: RecallState) => Promise<void>;
}

export class IndexRecall {
  readonly #deps: IndexRecallDeps;
  #state: RecallState;
  #report: RecallReport | undefined;
  #toLook = lookEvery;
  #sizeAtMs = Number.NEGATIVE_INFINITY;
  #stopped = false;
  #saved: Promise<void> = Promise.resolve();

  constructor(deps: IndexRecallDeps) {
    this.#deps = deps;
    const isMeasured = deps.measuring.settings.target > 0;
    const begun = { breadth: isMeasured ? safeBreadth : 1, comparisons: [], chunks: 0, codebooks: [] };
    this.#state = (isMeasured ? deps.known : undefined) ?? begun;
    this.#report = reportOf(this.#state);
  }

  get breadth(): number {
    return this.#state.breadth;
  }

  get report(): RecallReport | undefined {
    return this.#report;
  }

  /** Whether a search is to be measured. One that scored every chunk misses nothing. */
  chooses(plan: NativeSearchResult['plan']): boolean {
    if (plan === 'exact' || plan === 'device' || this.#stopped) return false;
    this.#noteChange();
    const { comparisons, breadth } = this.#state;
    return this.#deps.measuring.chooses(comparisonsWith(comparisons, breadth).length < comparisonsMax);
  }

  /** Measures a chosen search. Its snapshot must stay meanwhile. */
  async measure(asked: NativeSearch): Promise<void> {
    try {
      await this.#deps.measuring.run(() => this.#compare(asked));
    } catch (error) {
      if (!expected.some((code) => hasEngineCode(error, code))) throw error;
    }
  }

  /** Searches of this index are not measured any more. */
  stop(): void {
    this.#stopped = true;
  }

  /** Resolves when nothing is being saved. */
  settled(): Promise<void> {
    return this.#saved.catch(() => undefined);
  }

  /** Compares both searches. Resolves to the processor time that they took. */
  async #compare({ query, offsets, filterTerms, where, generation }: NativeSearch): Promise<number> {
    const { ask, measuring, moves } = this.#deps;
    const { breadth } = this;
    const movesBefore = moves();
    const common: NativeSearch = {
      query,
      offsets,
      ...(filterTerms && { filterTerms }),
      ...(where && { where }),
      generation,
      topK: resultsCompared,
      candidateK: candidateKDefault,
      breadth,
      components: false,
      background: true,
      timeoutMs,
    };
    const found = await ask(common);
    const { cpuMs } = found.timings;
    if (found.plan === 'exact' || found.plan === 'device' || !measuring.mayRun) return cpuMs;
    const exact = await ask({ ...common, plan: 'exact' });
    const share = (best: number): number => foundShare(found.scores, exact.scores, best);
    if (moves() === movesBefore && !this.#stopped)
      await this.#add({ breadth, chunks: this.#chunks(), at10: share(10), at100: share(100) });
    return cpuMs + exact.timings.cpuMs;
  }

  async #add(comparison: Comparison): Promise<void> {
    const { measuring, onMove, save } = this.#deps;
    const comparisons = [...this.#state.comparisons, comparison].slice(-comparisonsMax);
    this.#become({ ...this.#state, comparisons });
    this.#toLook -= 1;
    if (this.#toLook > 0) return;
    this.#toLook = lookEvery;
    const { breadth: from } = this;
    const at10 = recallAt(comparisons, from, 10);
    if (at10 === undefined) return;
    const { target } = measuring.settings;
    const to = nextBreadth(from, at10, target);
    this.#become({ ...this.#state, breadth: to });
    if (to !== from)
      onMove({ from, to, at10, target, comparisons: comparisonsWith(comparisons, from).length });
    if (save !== undefined) this.#saved = save(this.#state);
    await this.#saved;
  }

  /** Forgets the comparisons after a large change: a new codebook, or twice the chunks. The breadth stays until it is measured again. */
  #noteChange(): void {
    const now = this.#deps.measuring.settings.nowMs();
    if (now - this.#sizeAtMs < sizeLookMs) return;
    this.#sizeAtMs = now;
    const segments = this.#deps.segments();
    const chunks = this.#chunks();
    const codebooks = [...new Set(segments.flatMap(({ codebook }) => codebook || []))];
    const known = this.#state;
    if (chunks < 2 * known.chunks && codebooks.every((name) => known.codebooks.includes(name))) return;
    this.#become({ ...known, comparisons: [], chunks, codebooks });
    this.#toLook = lookEvery;
  }

  #chunks(): number {
    return this.#deps.segments().reduce((sum, segment) => sum + segment.chunks, 0);
  }

  #become(state: RecallState): void {
    this.#state = state;
    this.#report = reportOf(state);
  }
}

/** The engine gave up: the time was over, the index was closed, or this node lacks a part of it. */
const expected = ['deadline_exceeded', 'closed', 'absent', 'values_missing'] as const;

export function reportOf({ breadth, comparisons }: RecallState): RecallReport | undefined {
  const [at10, at100] = [recallAt(comparisons, breadth, 10), recallAt(comparisons, breadth, 100)];
  if (at10 === undefined || at100 === undefined) return undefined;
  return { breadth, comparisons: comparisonsWith(comparisons, breadth).length, at10, at100 };
}
