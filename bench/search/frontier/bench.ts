/**
 * `npm run bench -- frontier`: what recall costs. One run covers a range of `candidate_k`, kernels and numbers of threads, over
 * embeddings of real text (`search-embed` makes them) or generated ones. Other checkouts, with codes of their own, and
 * other engines can take part. All sides have the same vectors and queries.
 *
 * Recall is measured against an exhaustive scan of the same int8 vectors. A document counts by its best chunk. Sides take turns
 * at every query, and at being first. A query's time is the least of its rounds, because other work on the machine can
 * only add to a time. It adds less to processor time, which `--clock processor` takes. p50 and p99 are over queries.
 */
import { cpus } from 'node:os';
import path from 'node:path';
import { createEngine, type KernelName, type NativeEngine } from '../../../src/index/engine/native.ts';
import { benchmark, type OptionsOf } from '../../lib/benchmark.ts';
import { describeEnvironment, root, type Environment } from '../../lib/environment.ts';
import { directory, flag, integer, integers, names, optional, words } from '../../lib/options.ts';
import { chunksOf, spread, tokenVectorsOf, type Corpus, type Query } from '../corpus.ts';
import { openEmbeddings } from '../embedding-directory.ts';
import { buildSealed, indexDirectory, OpenIndex, type SearchSettings } from '../engine-index.ts';
import { topK } from '../engine-rows.ts';
import { rankings, recall, type Ranking } from '../measure.ts';
import { activeStates, churnedState, staticState, type IndexState } from '../states.ts';
import { synthesise } from '../synthetic/synthetic.ts';
import { peerNames } from './peer-programs.ts';
import { peerPoints, unitTruths, withUnitRows, type Truth, type Truths } from './peers.ts';
import { renderFrontier } from './report.ts';
import { clocks, Times, type Clock, type Point } from './times.ts';

const stateNames = [
  'static',
  'churned',
  'active-full',
  '1/2',
  '1/10',
  '1/100',
  '1/1000',
  '1/10000',
  '1/100000',
] as const;
type StateName = (typeof stateNames)[number];

/** How candidates are found: as the engine chooses, or forced. With `exact` every chunk is scored. */
const routes = ['auto', 'codes', 'lists', 'graph', 'exact'] as const;

const settings = {
  embeddings: words('directories of embeddings; without one vectors are generated'),
  chunks: integer(0, 'chunks of the index; 0 = all of the embeddings', 0),
  meanRows: integer(64, 'mean token vectors of a generated chunk'),
  queries: integer(200, 'queries'),
  rounds: integer(5, 'times that every query is asked'),
  candidateK: integers('10,20,35,50,75,100,150,200,300,500', 'values of candidate_k'),
  candidates: names(routes, 'how candidates are found', ['auto']),
  centroids: integer(0, 'centroids of the codebook; 0 = as many as its token vectors deserve', 0),
  states: names(stateNames, 'states of the index', ['static']),
  kernels: words('kernels to force; without one the best of this machine runs'),
  threads: integers('1,2', 'threads of the engine'),
  clock: names(['wall', 'processor'], 'clock that times a search', ['wall']),
  against: words('folders of other checkouts, built and installed, measured in the same rounds'),
  againstFirst: flag('load those before this checkout, because the first one may be some hundredths faster'),
  peers: names(peerNames, 'what to measure beside', []),
  pooled: optional(
    'directory',
    'embeddings of the same chunks with pooled rows: ours stand beside the peers, too',
  ),
  seed: integer(1, 'seed of the generated vectors', 0),
  cache: directory(path.join(root, 'build', 'bench-search'), 'keeps indexes and peers'),
};
type Options = OptionsOf<typeof settings>;

export interface FrontierReport {
  readonly environment: Environment;
  readonly queries: number;
  readonly rounds: number;
  readonly corpora: readonly {
    readonly embeddings: string;
    readonly chunks: number;
    readonly tokenVectors: number;
    readonly points: readonly Point[];
    readonly skipped: readonly string[];
  }[];
}

export const frontier = benchmark({
  name: 'frontier',
  summary: 'what each recall costs, over candidate_k, kernels and threads, beside an older build and peers',
  settings,
  run,
  render: renderFrontier,
});

async function run(options: Options): Promise<FrontierReport> {
  const corpora: FrontierReport['corpora'][number][] = [];
  for (const corpus of corporaOf(options)) {
    const queries = spread(corpus.queries, options.queries);
    const points: Point[] = [];
    const skipped: string[] = [];
    const truths = options.peers.length > 0 ? await truthsOf(options, corpus, queries) : undefined;
    const beside = truths && { truth: truths.weighted, tokens: tokenVectorsOf(corpus) };
    for (const state of options.states)
      points.push(...(await ofState(options, { state, corpus, queries, beside })));
    if (beside !== undefined && options.pooled !== undefined)
      points.push(...(await ofState(options, { ...pooledOf(options, corpus), state: 'static', beside })));
    if (truths !== undefined) {
      for (const threads of options.threads) {
        const asked = { ...options, clock: clockOf(options), corpus, queries, truths, threads, skipped };
        for await (const point of peerPoints(asked)) {
          points.push(point);
          tell(options, point);
        }
      }
    }
    corpora.push({
      embeddings: corpus.description,
      chunks: chunksOf(corpus),
      tokenVectors: tokenVectorsOf(corpus),
      points,
      skipped,
    });
  }
  const kernels = options.kernels.length > 0 ? options.kernels.join(', ') : 'auto';
  const environment = describeEnvironment(options.command, kernels, options.threads);
  return { environment, queries: options.queries, rounds: options.rounds, corpora };
}

/** The same chunks with pooled rows. */
function pooledOf(options: Options, corpus: Corpus): Pick<Measured, 'corpus' | 'queries' | 'pooled'> {
  const pooled = openEmbeddings(options.pooled!, chunksOf(corpus));
  if (pooled.documentChunks.join() !== corpus.documentChunks.join())
    throw new Error(`${options.pooled} holds other chunks than ${corpus.description}`);
  return { corpus: pooled, queries: spread(pooled.queries, options.queries), pooled: true };
}

function* corporaOf({ embeddings, chunks, meanRows, queries, seed }: Options): Generator<Corpus> {
  for (const given of embeddings) yield openEmbeddings(given, chunks === 0 ? undefined : chunks);
  if (embeddings.length === 0) yield synthesise({ chunks: chunks || 10_000, meanRows, queries, seed });
}

interface Side {
  readonly name: string;
  readonly kernel: string;
  readonly threads: number;
  readonly engine: NativeEngine;
  readonly checkout: Checkout;
}

/** The engine of a checkout, and the functions that build and open an index with it. */
interface Checkout {
  readonly name: string;
  readonly createEngine: typeof createEngine;
  readonly buildSealed: typeof buildSealed;
  readonly OpenIndex: typeof OpenIndex;
  /** Its indexes are kept there, a folder a kernel: codes of one build or kernel are not those of another. */
  readonly folder: string;
}

async function checkoutAt(folder: string): Promise<Checkout> {
  const checkout = path.resolve(folder);
  type Engine = Pick<Checkout, 'createEngine'>;
  type Indexes = Pick<Checkout, 'buildSealed' | 'OpenIndex'>;
  const engine = (await import(path.join(checkout, 'src/index/engine/native.ts'))) as Engine;
  const indexes = (await import(path.join(checkout, 'bench/search/engine-index.ts'))) as Indexes;
  const name = path.basename(checkout);
  return {
    name: `maxsimd of ${name}`,
    createEngine: engine.createEngine,
    buildSealed: indexes.buildSealed,
    OpenIndex: indexes.OpenIndex,
    folder: `against-${name}`,
  };
}

/** Every kernel at every number of threads, of this checkout and the others. */
async function sidesOf({ kernels, threads, against, againstFirst }: Options): Promise<readonly Side[]> {
  const own: Checkout = { name: 'maxsimd', createEngine, buildSealed, OpenIndex, folder: '' };
  const others = await Promise.all(against.map(checkoutAt));
  const checkouts = againstFirst ? [...others, own] : [own, ...others];
  const forced = kernels.length > 0 ? (kernels as readonly KernelName[]) : (['auto'] as const);
  return forced.flatMap((kernel) =>
    threads.flatMap((count) =>
      checkouts.map((checkout) => {
        const engine = checkout.createEngine({ threads: Math.min(count, cpus().length), kernel });
        return { name: checkout.name, kernel: engine.info.kernel, threads: count, engine, checkout };
      }),
    ),
  );
}

/** An index of our own that is measured in one state. */
interface Measured {
  readonly state: StateName;
  readonly corpus: Corpus;
  readonly queries: readonly Query[];
  /** Where peers are measured: the truth of all sides, and the tokens of the text. */
  readonly beside: { readonly truth: Truth; readonly tokens: number } | undefined;
  readonly pooled?: boolean;
}

async function ofState(
  options: Options,
  { state: name, corpus, queries, beside, pooled = false }: Measured,
): Promise<readonly Point[]> {
  const { onProgress } = options;
  const sides = await sidesOf(options);
  const { state, selectivity } = stateOf(name, corpus, options.seed);
  const opened: { readonly side: Side; readonly index: OpenIndex }[] = [];
  const points: Point[] = [];
  try {
    for (const side of sides) {
      const of = { engine: side.engine, corpus, centroids: options.centroids };
      const cache = path.join(options.cache, side.checkout.folder, side.kernel);
      const folder = indexDirectory(cache, corpus, options.centroids);
      const sealed = await side.checkout.buildSealed(of, folder, onProgress);
      const index = await side.checkout.OpenIndex.open(of, sealed, state.changes);
      opened.push({ side, index });
    }
    const now = clocks[clockOf(options)];
    const of = (candidateK: number, plan: SearchSettings['plan']): SearchSettings => ({
      candidateK,
      topK,
      plan,
      selectivity,
    });
    const scanned = await rankings((query) => opened[0]!.index.documents(query, of(topK, 'exact')), queries);
    // With filters and other changes fewer documents are live than peers have.
    const truth = name === 'static' ? beside?.truth : undefined;
    const contenders = options.candidateK.flatMap((candidateK) =>
      opened.flatMap(({ side, index }) =>
        options.candidates.map((plan) => ({ side, index, candidateK, plan, times: new Times() })),
      ),
    );
    const found = new Map<(typeof contenders)[number], readonly Ranking[]>();
    for (const contender of contenders) {
      const search = (query: Query): Promise<Ranking> =>
        contender.index.documents(query, of(contender.candidateK, contender.plan));
      found.set(contender, await rankings(search, queries));
    }
    for (let round = 0; round < options.rounds; round++) {
      for (const [at, query] of queries.entries()) {
        // The other side is first every other time.
        const order = (round + at) % 2 === 0 ? contenders : contenders.toReversed();
        for (const { index, candidateK, plan: asked, times } of order) {
          const startedAt = now();
          const { plan, timings } = await index.search(query, of(candidateK, asked));
          times.add(at, now() - startedAt, { plan, ...timings });
        }
      }
    }
    for (const contender of contenders) {
      const { side, index, candidateK, times } = contender;
      const documents = found.get(contender)!;
      const point: Point = {
        variant: pooled ? `${side.name}, pooled rows` : side.name,
        state: name,
        kernel: side.kernel,
        threads: side.threads,
        settings: `candidate_k ${candidateK}, ${times.plans().join(' or ')}`,
        bytes_a_token: beside === undefined ? null : index.diskBytes() / beside.tokens,
        recall_at_10: recall(truth?.stored ?? scanned, documents, 10),
        recall_at_100: recall(truth?.stored ?? scanned, documents, 100),
        unit_recall_at_10: truth === undefined ? null : recall(truth.unit, documents, 10),
        scan_recall_at_10: pooled ? recall(scanned, documents, 10) : null,
        ...times.summary(),
      };
      points.push(point);
      tell(options, point);
    }
  } finally {
    for (const { index } of opened) index.close();
    for (const { engine } of sides) engine.close();
  }
  return points;
}

function clockOf({ clock }: Options): Clock {
  return clock.includes('processor') ? 'processor' : 'wall';
}

/** At once: building a peer's index may take an hour. */
function tell(
  { onProgress }: Options,
  { variant, state, kernel, threads, settings: asked, ...point }: Point,
): void {
  onProgress(
    `${state} ${variant} ${kernel} x${threads}, ${asked}: ${point.recall_at_10.toFixed(4)} ${point.recall_at_100.toFixed(4)}, p50 ${point.p50_ms.toFixed(2)}, p99 ${point.p99_ms.toFixed(2)} ms`,
  );
}

async function truthsOf(options: Options, corpus: Corpus, queries: readonly Query[]): Promise<Truths> {
  const unit = await unitTruths({ ...options, corpus, queries });
  const engine = createEngine({ threads: 0, kernel: 'auto' });
  const sealed = await buildSealed(
    { engine, corpus },
    indexDirectory(path.join(options.cache, engine.info.kernel), corpus),
    options.onProgress,
  );
  const index = await OpenIndex.open({ engine, corpus }, sealed, staticState.changes);
  const exact = { candidateK: topK, topK, plan: 'exact', selectivity: undefined } as const;
  const scan = (asked: readonly Query[]): Promise<readonly Ranking[]> =>
    rankings((query) => index.documents(query, exact), asked);
  try {
    const unitQueries = queries.map((query) => withUnitRows(query, corpus.dim));
    return {
      weighted: { stored: await scan(queries), unit: unit.weighted },
      unweighted: { stored: await scan(unitQueries), unit: unit.unweighted },
    };
  } finally {
    index.close();
    engine.close();
  }
}

function stateOf(
  name: StateName,
  corpus: Corpus,
  seed: number,
): { readonly state: IndexState; readonly selectivity: SearchSettings['selectivity'] } {
  if (name === 'churned') return { state: churnedState(corpus, seed), selectivity: undefined };
  if (name === 'active-full') return { state: activeStates(corpus).at(-1)!, selectivity: undefined };
  const selectivity =
    name === 'static' ? undefined : (Number(name.slice(2)) as SearchSettings['selectivity']);
  return { state: staticState, selectivity };
}
