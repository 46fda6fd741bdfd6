/**
 * `npm run bench -- memory`: what searches cost when the index is larger than the memory it may use. Two processes have
 * an index of the same files each, one in a control group whose memory, page cache included, becomes smaller step by step.
 * They take turns at every query. Every query is a new one, and a step counts after a round that does not: what is in memory
 * is what other queries left there.
 */
import { spawn, execFileSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { createEngine, type KernelName } from '../../src/index/engine/native.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { scratchFolder } from '../lib/endings.ts';
import { describeEnvironment, root, type Environment } from '../lib/environment.ts';
import { directory, integer, integers, optional } from '../lib/options.ts';
import { mean, quantile, sum } from '../lib/statistics.ts';
import { markdownTable } from '../lib/table.ts';
import { dequantised } from '../lib/vectors.ts';
import { seededRandom } from '../lib/seeded-random.ts';
import { documentsOf, tokenVectorsOf, type Corpus, type Query } from '../search/corpus.ts';
import { buildSealed, indexDirectory } from '../search/engine-index.ts';
import { boundedMemory } from './bounded-memory.ts';
import { openCorpus, type StageAnswer, type StageOrder, type StageSearch } from './stage.ts';

const settings = {
  embeddings: optional('directory', 'embeddings of real text; without them vectors are generated'),
  chunks: integer(0, 'chunks of the index; 0 = all of the embeddings', 0),
  meanRows: integer(64, 'mean token vectors of a generated chunk'),
  queries: integer(400, 'queries of a round'),
  seed: integer(1, 'seed of the generated vectors', 0),
  candidateK: integer(200, 'candidates of a search'),
  kernel: optional('name', 'kernel to force'),
  threads: integer(1, 'threads of the engine'),
  shares: integers('100,75,50,35,25', 'memory for the index in hundredths of the size of its files'),
  groups: optional('directory', 'control groups, where one may be made; without it no memory is bounded'),
  cache: directory(path.join(root, 'build', 'bench-search'), 'indexes are kept there'),
};
type Options = OptionsOf<typeof settings>;

/** As many as queries of real text have in the mean. */
const queryRows = 19;
const warmUp = 2;

interface Latency {
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly candidates_ms: number;
  readonly exact_ms: number;
  readonly faults: number;
  readonly anonymous_bytes: number;
}

interface Step {
  readonly share: number;
  readonly page_cache_bytes: number;
  readonly free: Latency;
  readonly bounded: Latency;
}

interface MemoryReport {
  readonly environment: Environment;
  readonly corpus: string;
  readonly token_vectors: number;
  readonly index_bytes: number;
  /** Without rows: codes, lists, codebooks and postings. */
  readonly derived_bytes: number;
  readonly anonymous_bytes: number;
  readonly steps: readonly Step[];
}

export const memory = benchmark({
  name: 'memory',
  summary: 'searches of an index that is larger than the memory it may use',
  settings,
  run,
  render,
});

async function run(options: Options): Promise<MemoryReport> {
  const { cache, threads, onProgress } = options;
  const { embeddings, chunks, meanRows, queries, seed } = options;
  const choice = { embeddings, chunks, meanRows, queries, seed };
  const corpus = openCorpus(choice);
  const engine = createEngine({ threads: 0, kernel: (options.kernel ?? 'auto') as KernelName });
  const { kernel } = engine.info;
  const sealed = await buildSealed({ engine, corpus }, indexDirectory(cache, corpus), onProgress);
  engine.close();
  // Pages count for whoever brings them in: each process has files of its own.
  using copies = scratchFolder('bench-memory');
  using group = options.groups === undefined ? undefined : boundedMemory(options.groups);
  const random = seededRandom(seed);
  const sides: Stage[] = [];
  try {
    for (const [at, before] of ['', group === undefined ? '' : `${group.enter}; `].entries()) {
      const copy = path.join(copies.path, String(at));
      cpSync(sealed.directory, copy, { recursive: true, dereference: true });
      dropCache(copy);
      sides.push(
        await Stage.start(
          { corpus: choice, sealed: { ...sealed, directory: copy }, kernel, threads },
          before,
        ),
      );
    }
    const files = filesOf(path.join(copies.path, '0'));
    const bytes = sum(files.map((file) => statSync(file).size));
    const round = (): Promise<readonly Latency[]> =>
      askAll(
        sides,
        Array.from({ length: queries }, () => ({
          query: queryOf(corpus, random),
          candidateK: options.candidateK,
        })),
      );
    const [warm] = await round();
    const steps: Step[] = [];
    for (const share of options.shares) {
      group?.bound(group.used().anonymousBytes + (bytes * share) / 100);
      for (let n = 0; n < warmUp; n++) await round();
      const [free, bounded] = await round();
      steps.push({ share, page_cache_bytes: group?.used().cacheBytes ?? 0, free: free!, bounded: bounded! });
      onProgress(cellsOf(steps.at(-1)!).join('  '));
    }
    return {
      environment: describeEnvironment(options.command, kernel, [threads]),
      corpus: corpus.description,
      token_vectors: tokenVectorsOf(corpus),
      index_bytes: bytes,
      derived_bytes: bytes - sum(files.filter(isSegment).map((file) => statSync(file).size)),
      anonymous_bytes: warm!.anonymous_bytes,
      steps,
    };
  } finally {
    for (const side of sides) await side.stop();
  }
}

/** A process with an open index. */
class Stage {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** `before`: what its shell does first. */
  static async start(order: StageOrder, before: string): Promise<Stage> {
    const script = path.join(import.meta.dirname, 'stage.ts');
    const child = spawn('sh', ['-c', `${before}exec '${process.execPath}' '${script}'`], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    const stage = new Stage(child);
    await stage.#exchange(order);
    return stage;
  }

  ask(search: StageSearch): Promise<StageAnswer> {
    return this.#exchange(search);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    if (this.#child.connected) this.#child.disconnect();
    await ended;
  }

  #exchange<Answer>(message: object): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null, signal: string | null): void => {
        reject(new Error(`the process ended: ${signal ?? code}`));
      };
      this.#child.once('exit', onExit);
      this.#child.once('message', (answer) => {
        this.#child.off('exit', onExit);
        resolve(answer as Answer);
      });
      this.#child.send(message);
    });
  }
}

/** A run of token vectors of some chunk: queries of real text are few, and ask for the same chunks again. */
function queryOf(corpus: Corpus, random: () => number): Query {
  const document = Math.floor(random() * documentsOf(corpus));
  const { vectors, scales } = corpus.read(document, document + 1);
  const rows = Math.min(queryRows, scales.length);
  const first = Math.floor(random() * (scales.length - rows + 1));
  const all = dequantised({ vectors, scales }, corpus.dim);
  return { vectors: all.slice(first * corpus.dim, (first + rows) * corpus.dim), rows };
}

/** Every search once, by each side in turn, the first of them changing. */
async function askAll(
  sides: readonly Stage[],
  searches: readonly StageSearch[],
): Promise<readonly Latency[]> {
  const answers = new Map<Stage, StageAnswer[]>(sides.map((side) => [side, []]));
  for (const [at, search] of searches.entries()) {
    const order = at % 2 === 0 ? sides : sides.toReversed();
    for (const side of order) answers.get(side)!.push(await side.ask(search));
  }
  return sides.map((side) => latencyOf(answers.get(side)!));
}

function latencyOf(answers: readonly StageAnswer[]): Latency {
  const times = answers.map(({ milliseconds }) => milliseconds);
  return {
    p50_ms: quantile(times, 0.5),
    p99_ms: quantile(times, 0.99),
    candidates_ms: quantile(
      answers.map(({ candidatesMs }) => candidatesMs),
      0.5,
    ),
    exact_ms: quantile(
      answers.map(({ exactMs }) => exactMs),
      0.5,
    ),
    faults: mean(answers.map(({ faults }) => faults)),
    anonymous_bytes: answers.at(-1)!.anonymousBytes,
  };
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.json'))
    .map(({ name }) => path.join(folder, name));
}

function isSegment(file: string): boolean {
  return file.endsWith('.seg');
}

/** The page cache lets go of what no mapping uses. */
function dropCache(folder: string): void {
  execFileSync('sync');
  for (const file of filesOf(folder))
    execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']);
}

const header = [
  'memory for the index',
  'page cache MiB',
  'p50 ms free',
  'bounded',
  'p99 ms free',
  'bounded',
  'candidates',
  'exact',
  'faults',
  'p50 ratio',
];

function cellsOf({ share, page_cache_bytes: cache, free, bounded }: Step): readonly string[] {
  return [
    `${share}%`,
    (cache / 2 ** 20).toFixed(0),
    free.p50_ms.toFixed(2),
    bounded.p50_ms.toFixed(2),
    free.p99_ms.toFixed(1),
    bounded.p99_ms.toFixed(1),
    `${free.candidates_ms.toFixed(2)}, ${bounded.candidates_ms.toFixed(2)}`,
    `${free.exact_ms.toFixed(2)}, ${bounded.exact_ms.toFixed(2)}`,
    bounded.faults.toFixed(1),
    (bounded.p50_ms / free.p50_ms).toFixed(2),
  ];
}

function render(report: MemoryReport): string {
  const { corpus, token_vectors: rows, index_bytes: bytes, derived_bytes: derived, steps } = report;
  return [
    `${corpus}: ${rows} token vectors, ${(bytes / rows).toFixed(1)} bytes of disk each, ${(derived / rows).toFixed(1)} of them derived`,
    ...markdownTable(header, steps.map(cellsOf)),
    '',
  ].join('\n');
}
