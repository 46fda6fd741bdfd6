/**
 * Searches of an index that is larger than the memory that it may use. Two processes have an index of the same
 * files each. One is in a control group whose memory, page cache included, becomes smaller step by step. They take turns at every
 * query. Every query is a new one, and a step is measured after rounds that are not, so other queries decide what is in memory.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { mean, quantile, sum } from '../../bench/lib/statistics.ts';
import { markdownTable } from '../../bench/lib/table.ts';
import { dequantised } from '../../bench/lib/vectors.ts';
import { documentsOf, type Corpus, type Query } from '../../bench/search/corpus.ts';
import { openEmbeddings } from '../../bench/search/embedding-directory.ts';
import { buildSealed } from '../../bench/search/engine-index.ts';
import { synthesise } from '../../bench/search/synthetic/synthetic.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import { rounds } from '../rounds.ts';
import { newDirectory } from '../support/machine/temporary-directory.ts';
import { seededRandom } from '../../bench/lib/seeded-random.ts';
import type { Answer, Order } from './bounded-memory-process.ts';

/** A directory of embeddings of real text, which `npm run bench -- search-embed` makes. Without it, chunks are generated. */
const embeddings = process.env['TEST_EMBEDDINGS'];
const chunks = rounds({ short: 3000, nightly: 34_000 });
const queries = rounds({ short: 20, nightly: 200 });
/** Rounds of a step that are not measured. */
const warmUps = rounds({ short: 1, nightly: 2 });
/** Memory for the index, in hundredths of the size of its files. */
const shares = [100, 50, 35, 25];
/**
 * Times the unbounded median, with memory for half of the index. The goal is 2 for real text. Searches of generated chunks read more of the
 * index, and searches of a small index read much of it.
 */
const timesMax = embeddings === undefined ? rounds({ short: 200, nightly: 3 }) : 2;
/** The mean number of token vectors of queries of real text. */
const queryRows = 19;

const table: string[][] = [];
afterAll(() => {
  const header = [
    'memory',
    'page cache MiB',
    'p50 ms free',
    'bounded',
    'p99 ms free',
    'bounded',
    'faults',
    'ratio',
  ];
  console.log(markdownTable(header, table).join('\n'));
});

it(`half of the memory takes at most ${timesMax} times as long`, { timeout: 3_600_000 }, async (context) => {
  const groups = controlGroups();
  context.skip(groups === undefined, 'this user may make no control group of memory');
  const corpus =
    embeddings === undefined
      ? synthesise({ chunks, meanRows: 61, queries: 1, seed: 1 })
      : openEmbeddings(embeddings, undefined);
  const { dim, documentChunks, chunkRows } = corpus;
  const engine = createEngine({ threads: 0, kernel: 'auto' });
  const sealed = await buildSealed({ engine, corpus }, await newDirectory(), () => undefined);
  engine.close();
  const group = boundedMemory(groups!);
  const sides: Side[] = [];
  for (const before of ['', `${group.enter}; `]) {
    // A page counts for the process that brings it in, so each process has files of its own.
    const directory = path.join(await newDirectory(), 'index');
    cpSync(sealed.directory, directory, { recursive: true, dereference: true });
    dropCache(directory);
    sides.push(
      await Side.start(
        { sealed: { ...sealed, directory }, shape: { dim, documentChunks, chunkRows } },
        before,
      ),
    );
  }
  const [free, bounded] = sides as [Side, Side];
  const bytes = sum(filesOf(sealed.directory).map((file) => statSync(file).size));
  const random = seededRandom(1);
  const ratios = new Map<number, number>();
  await round(sides, corpus, random);
  for (const share of shares) {
    group.bound(group.used().anonymousBytes + (bytes * share) / 100);
    for (let n = 0; n < warmUps; n += 1) await round(sides, corpus, random);
    const answers = await round(sides, corpus, random);
    const at = (side: Side, fraction: number): number =>
      quantile(
        answers.get(side)!.map(({ milliseconds }) => milliseconds),
        fraction,
      );
    const ratio = at(bounded, 0.5) / at(free, 0.5);
    ratios.set(share, ratio);
    table.push([
      `${share}%`,
      (group.used().cacheBytes / 2 ** 20).toFixed(0),
      ...[at(free, 0.5), at(bounded, 0.5), at(free, 0.99), at(bounded, 0.99)].map((ms) => ms.toFixed(2)),
      mean(answers.get(bounded)!.map(({ faults }) => faults)).toFixed(1),
      ratio.toFixed(2),
    ]);
  }
  expect(ratios.get(50)).toBeLessThanOrEqual(timesMax);
});

/** A process with an open index. It ends with the test. */
class Side {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** The shell runs `before` first. */
  static async start(order: Order, before: string): Promise<Side> {
    const script = path.join(import.meta.dirname, 'bounded-memory-process.ts');
    const child = spawn('sh', ['-c', `${before}exec '${process.execPath}' '${script}'`], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    const exited = once(child, 'exit');
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    const side = new Side(child);
    await side.#exchange(order);
    return side;
  }

  async ask(query: Query): Promise<Answer> {
    return (await this.#exchange(query)) as Answer;
  }

  #exchange(message: Order | Query): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null): void => reject(new Error(`the process ended with ${code}`));
      this.#child.once('exit', onExit);
      this.#child.once('message', (answer) => {
        this.#child.off('exit', onExit);
        resolve(answer);
      });
      this.#child.send(message);
    });
  }
}

/** Every query is asked once of each side. The sides take turns at being first. */
async function round(sides: readonly Side[], corpus: Corpus, random: () => number) {
  const answers = new Map<Side, Answer[]>(sides.map((side) => [side, []]));
  for (let at = 0; at < queries; at += 1) {
    const query = queryOf(corpus, random);
    for (const side of at % 2 === 0 ? sides : sides.toReversed())
      answers.get(side)!.push(await side.ask(query));
  }
  return answers;
}

/** Some neighbouring token vectors of a chunk. */
function queryOf(corpus: Corpus, random: () => number): Query {
  const document = Math.floor(random() * documentsOf(corpus));
  const { vectors, scales } = corpus.read(document, document + 1);
  const rows = Math.min(queryRows, scales.length);
  const first = Math.floor(random() * (scales.length - rows + 1));
  const all = dequantised({ vectors, scales }, corpus);
  return { vectors: all.slice(first * corpus.dim, (first + rows) * corpus.dim), rows };
}

/** A folder in which a control group of memory can be made, of version 1 or 2. */
function controlGroups(): string | undefined {
  return ['/sys/fs/cgroup/memory', '/sys/fs/cgroup'].find((parent) => {
    const probe = path.join(parent, `maxsimd-probe-${process.pid}`);
    try {
      mkdirSync(probe);
      const has = ['memory.limit_in_bytes', 'memory.max'].some((name) => existsSync(path.join(probe, name)));
      rmdirSync(probe);
      return has;
    } catch {
      return false;
    }
  });
}

/** A group of processes whose memory, page cache included, the kernel bounds. It goes with the test. */
function boundedMemory(parent: string) {
  const group = path.join(parent, `maxsimd-test-${process.pid}`);
  mkdirSync(group);
  onTestFinished(() => rmdirSync(group));
  const isFirst = existsSync(path.join(group, 'memory.limit_in_bytes'));
  const limit = path.join(group, isFirst ? 'memory.limit_in_bytes' : 'memory.max');
  return {
    /** A shell command by which a shell enters the group. */
    enter: `echo $$ > '${path.join(group, 'cgroup.procs')}'`,
    /** The kernel takes back at once what is beyond. */
    bound: (bytes: number) => writeFileSync(limit, String(Math.round(bytes))),
    /** Memory of the processes themselves, and page cache that they brought in. */
    used() {
      const stat = readFileSync(path.join(group, 'memory.stat'), 'utf8');
      const of = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1]);
      return { anonymousBytes: of(isFirst ? 'rss' : 'anon'), cacheBytes: of(isFirst ? 'cache' : 'file') };
    },
  };
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.json'))
    .map(({ name }) => path.join(folder, name));
}

/** The page cache gives up pages that no mapping uses. */
function dropCache(folder: string): void {
  execFileSync('sync');
  for (const file of filesOf(folder))
    execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']);
}
