/** The rows of our own engine: every state at every candidate_k, and the exhaustive scan that recall is compared with. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rowBytes } from '../../src/contracts/row-shape.ts';
import { chunksOf, documentsOf, rowOf, rowsOf, tokenVectorsOf, type Query } from './corpus.ts';
import { OpenIndex, type IndexOptions, type SealedIndex, type SearchSettings } from './engine-index.ts';
import { selectivities, type Selectivity } from './filters.ts';
import { measure, rankings, type Effort, type Ranking, type Searcher } from './measure.ts';
import type { SearchReport, SearchRow } from './report.ts';
import { activeStates, churnedState, staticState, type IndexState } from './states.ts';

export const topK = 100;
const candidateKs: readonly number[] = [100, 200, 500];

export type Part = 'static' | 'active' | 'churned' | 'filtered' | 'exhaustive';
export const parts: readonly Part[] = ['static', 'exhaustive', 'active', 'churned', 'filtered'];

export interface EngineRowOptions {
  readonly index: IndexOptions;
  readonly sealed: SealedIndex;
  readonly queries: readonly Query[];
  readonly parts: ReadonlySet<Part>;
  readonly effort: Effort;
  readonly seed: number;
  readonly onProgress: (line: string) => void;
}

export interface EngineRows {
  readonly rows: readonly SearchRow[];
  readonly skipped: SearchReport['skipped'];
}

export async function engineRows(options: EngineRowOptions): Promise<EngineRows> {
  const { parts: wanted, seed, onProgress } = options;
  const { corpus } = options.index;
  const rows: SearchRow[] = [];
  const skipped: { variant: string; reason: string }[] = [];
  await withState(options, staticState, async (opened) => {
    if (wanted.has('static')) rows.push(...(await opened.sweep({})));
    if (wanted.has('exhaustive')) rows.push(await opened.exhaustive());
    if (wanted.has('filtered')) {
      onProgress(`values for ranges: ${await opened.addValues()}`);
      for (const selectivity of selectivities) {
        if (selectivity > documentsOf(corpus)) {
          const variant = `maxsimd filtered, 1/${selectivity}`;
          const reason = `there are ${documentsOf(corpus)} documents`;
          onProgress(`${variant}: skipped (${reason})`);
          skipped.push({ variant, reason });
          continue;
        }
        // One after the other, so that both meet the same other work.
        for (const by of ['filter', 'where'] as const)
          rows.push(...(await opened.sweep({ selectivity, by })));
      }
    }
  });
  const others = [
    ...(wanted.has('active') ? activeStates(corpus) : []),
    ...(wanted.has('churned') ? [churnedState(corpus, seed)] : []),
  ];
  for (const state of others) {
    await withState(options, state, async (opened) => {
      rows.push(...(await opened.sweep({})));
    });
  }
  return { rows, skipped };
}

async function withState(
  options: EngineRowOptions,
  state: IndexState,
  work: (opened: StateRows) => Promise<void>,
): Promise<void> {
  const before = options.index.engine.memory().takenBytes;
  const index = await OpenIndex.open(options.index, options.sealed, state.changes);
  try {
    await work(new StateRows(options, state, index, before));
  } finally {
    index.close();
  }
}

interface Sweep {
  readonly selectivity?: Selectivity;
  readonly by?: 'filter' | 'where';
}

class StateRows {
  readonly #options: EngineRowOptions;
  readonly #state: IndexState;
  readonly #index: OpenIndex;
  readonly #memoryBefore: number;

  constructor(options: EngineRowOptions, state: IndexState, index: OpenIndex, memoryBefore: number) {
    this.#options = options;
    this.#state = state;
    this.#index = index;
    this.#memoryBefore = memoryBefore;
  }

  /** Returns the time and the memory that it took. */
  async addValues(): Promise<string> {
    const { engine, corpus } = this.#options.index;
    const startedAt = performance.now();
    const before = engine.memory().takenBytes;
    await this.#index.addValues();
    const bytes = (engine.memory().takenBytes - before) / documentsOf(corpus);
    return `${((performance.now() - startedAt) / 1000).toFixed(2)} s, ${bytes.toFixed(1)} bytes a document`;
  }

  async sweep({ selectivity, by = 'filter' }: Sweep): Promise<readonly SearchRow[]> {
    const truth = await this.#truth(selectivity);
    const rows: SearchRow[] = [];
    for (const candidateK of candidateKs) {
      const settings: SearchSettings = { candidateK, topK, plan: 'auto', selectivity, by };
      const variant = by === 'where' ? 'maxsimd where' : 'maxsimd';
      const row = await this.#row(variant, settings, truth);
      rows.push({
        ...row,
        candidate_k: candidateK,
        settings: `plan ${(await this.#plans(settings)).join(' or ')}, ${this.#index.segments()} segments`,
      });
    }
    return rows;
  }

  async exhaustive(): Promise<SearchRow> {
    const settings: SearchSettings = { candidateK: topK, topK, plan: 'exact', selectivity: undefined };
    const row = await this.#row('exhaustive', settings, await this.#truth(undefined));
    return { ...row, settings: 'plan exact' };
  }

  /** Rankings by an exhaustive scan of what is live and matches; kept beside the index. */
  async #truth(selectivity: Selectivity | undefined): Promise<readonly Ranking[]> {
    const { queries } = this.#options;
    const rowCount = queries.reduce((sum, { rows }) => sum + rows, 0);
    // Filling the active segment changes no live document.
    const name = [
      this.#state.state,
      selectivity ?? 1,
      this.#options.seed,
      queries.length,
      rowCount,
      norm1(queries),
    ];
    const file = path.join(this.#options.sealed.directory, `truth-${name.join('-')}.json`);
    if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as readonly Ranking[];
    const settings: SearchSettings = { candidateK: topK, topK, plan: 'exact', selectivity };
    const truth = await rankings(this.#searcher(settings), queries);
    writeFileSync(file, JSON.stringify(truth));
    return truth;
  }

  /** The engine chooses for each query. */
  async #plans(settings: SearchSettings): Promise<readonly string[]> {
    const plans = new Set<string>();
    for (const query of this.#options.queries) plans.add((await this.#index.search(query, settings)).plan);
    return [...plans].toSorted();
  }

  #searcher(settings: SearchSettings): Searcher {
    return async (query) => this.#index.documents(query, settings);
  }

  async #row(variant: string, settings: SearchSettings, truth: readonly Ranking[]): Promise<SearchRow> {
    const { index, queries, sealed, effort, onProgress } = this.#options;
    const { corpus } = index;
    const { state, active_segment, changes } = this.#state;
    const measured = await measure(this.#searcher(settings), queries, truth, effort);
    const written = changes.rewritten.reduce(
      (sum, document) => sum + rowOf(corpus, document + 1) - rowOf(corpus, document),
      0,
    );
    const deleted = changes.deleted.reduce((sum, document) => sum + rowsOf(corpus, document).length, 0);
    const chunks = chunksOf(corpus) - deleted;
    const disk = this.#index.diskBytes();
    const matrices = (tokenVectorsOf(corpus) + written) * (rowBytes(corpus) + 2);
    onProgress(
      `${variant} ${state} active ${active_segment} 1/${settings.selectivity ?? 1} candidate_k ${settings.candidateK}: ` +
        `recall ${measured.recall_at_10.toFixed(4)} ${measured.recall_at_100.toFixed(4)}, p50 ${measured.p50_ms.toFixed(2)} ms`,
    );
    return {
      chunks,
      token_vectors: tokenVectorsOf(corpus),
      variant,
      state: settings.selectivity === undefined ? state : 'filtered',
      active_segment,
      selectivity: settings.selectivity ?? 1,
      candidate_k: null,
      ...measured,
      derived_bytes_per_chunk: (disk - matrices) / chunks,
      disk_bytes_per_chunk: disk / chunks,
      memory_bytes_per_chunk: (index.engine.memory().takenBytes - this.#memoryBefore) / chunks,
      build_s: sealed.buildSeconds,
      open_s: this.#index.openSeconds,
      settings: '',
    };
  }
}

/** Tells query sets of equal shape apart. */
function norm1(queries: readonly Query[]): string {
  let sum = 0;
  for (const { vectors } of queries) for (const value of vectors) sum += Math.abs(value);
  return sum.toFixed(3);
}
