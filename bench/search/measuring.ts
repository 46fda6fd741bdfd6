/**
 * `npm run bench -- measuring`: what measuring recall costs. Clients search an index without it, while the index is new (1 search in 10 may be
 * measured), and while it is settled (1 in 1,000). All search with the same breadth. The sides take turns, a second each.
 */
import path from 'node:path';
import { createEngine } from '../../src/index/engine/native.ts';
import type { IndexRecall } from '../../src/index/recall/index-recall.ts';
import { defaultRecallSettings, Measuring } from '../../src/index/recall/measuring.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { describeEnvironment, root, type Environment } from '../lib/environment.ts';
import { directory, integer, integers, optional } from '../lib/options.ts';
import { median, pairedRatios, percentiles, spread } from '../lib/statistics.ts';
import { markdownTable } from '../lib/table.ts';
import type { Query } from './corpus.ts';
import { openEmbeddings } from './embedding-directory.ts';
import { buildSealed, indexDirectory, OpenIndex } from './engine-index.ts';
import { staticState } from './states.ts';
import { synthesise } from './synthetic/synthetic.ts';

const settings = {
  embeddings: optional('directory', 'real embeddings (search-embed makes them), not synthetic ones'),
  chunks: integer(10_000, 'generated chunks'),
  clients: integers('1,2', 'clients, each with one search at a time'),
  rounds: integer(15, 'rounds of a second for each side'),
  cache: directory(path.join(root, 'build', 'bench-search'), 'keeps indexes'),
};
type Options = OptionsOf<typeof settings>;

const sides = ['without', 'new', 'settled'] as const;
const keys = ['p50', 'p99', 'a_second', 'processor_ms'] as const;
type Round = Readonly<Record<(typeof keys)[number] | 'measured', number>>;

interface MeasuringReport {
  readonly environment: Environment;
  readonly embeddings: string;
  readonly rows: readonly {
    readonly clients: number;
    readonly side: string;
    readonly rounds: readonly Round[];
    readonly without: readonly Round[];
  }[];
}

export const measuring = benchmark({
  name: 'measuring',
  summary: 'what measuring recall costs',
  settings,
  run,
  render,
});

async function run(options: Options): Promise<MeasuringReport> {
  const { embeddings, chunks, cache, onProgress } = options;
  const corpus =
    embeddings === undefined
      ? synthesise({ chunks, meanRows: 64, queries: 100, seed: 1 })
      : openEmbeddings(embeddings, undefined);
  const engine = createEngine({ threads: 0, kernel: 'auto' });
  const environment = describeEnvironment(options.command, engine.info.kernel, [engine.info.threads]);
  // A fast machine scores every token vector of a small index, and then there is nothing to measure.
  const of = { engine, corpus, exactTokenVectorsMax: 1 };
  const sealed = await buildSealed(
    of,
    indexDirectory(path.join(cache, engine.info.kernel), corpus),
    onProgress,
  );
  const index = await OpenIndex.open(of, sealed, staticState.changes);
  const rows: MeasuringReport['rows'][number][] = [];
  try {
    for (const clients of options.clients) {
      const recalls = {
        without: undefined,
        new: index.recall(measuringOf(engine.info.threads), []),
        settled: index.recall(measuringOf(engine.info.threads), comparisons),
      };
      const rounds = { without: [] as Round[], new: [] as Round[], settled: [] as Round[] };
      await round(index, corpus.queries, clients, undefined);
      for (let number = 0; number < options.rounds; number += 1) {
        for (const side of number % 2 === 0 ? sides : sides.toReversed())
          rounds[side].push(await round(index, corpus.queries, clients, recalls[side]));
      }
      for (const side of sides) rows.push({ clients, side, rounds: rounds[side], without: rounds.without });
    }
  } finally {
    index.close();
    engine.close();
  }
  return { environment, embeddings: corpus.description, rows };
}

function measuringOf(threads: number): Measuring {
  return new Measuring({ settings: defaultRecallSettings, threads, searchesWait: () => false });
}

/** As many as count: with fewer an index is new. */
const comparisons = Array.from({ length: 300 }, () => ({ breadth: 1, at10: 0.985, at100: 0.95 }));

/** A busy machine makes a round longer. With fewer searches perhaps none is chosen, and p99 says nothing. */
const searchesLeast = 200;

async function round(
  index: OpenIndex,
  queries: readonly Query[],
  clients: number,
  recall: IndexRecall | undefined,
): Promise<Round> {
  const times: number[] = [];
  let measured = 0;
  const before = process.cpuUsage();
  const startedAt = performance.now();
  const client = async (): Promise<void> => {
    while (performance.now() - startedAt < 1000 || times.length < searchesLeast) {
      const search = index.asked(queries[times.length % queries.length]!, searched);
      const askedAt = performance.now();
      const { plan } = await index.ask(search);
      times.push(performance.now() - askedAt);
      if (recall?.chooses(plan)) {
        measured += 1;
        void recall.measure(search);
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(before);
  const processor_ms = (user + system) / 1000 / times.length;
  return { ...percentiles(times, 50, 99), a_second: times.length / seconds, processor_ms, measured };
}

const searched = { candidateK: 200, topK: 10, plan: 'auto', selectivity: undefined } as const;

function render({ environment, embeddings, rows }: MeasuringReport): string {
  const cells = rows.map(({ clients, side, rounds, without }) => [
    String(clients),
    side,
    String(rounds.reduce((sum, { measured }) => sum + measured, 0)),
    ...keys.map((key) => {
      const own = rounds.map((one) => one[key]);
      const ratio = spread(
        pairedRatios(
          own,
          without.map((one) => one[key]),
        ),
      );
      const parts = [ratio.median, ratio.minimum, ratio.maximum].map((part) => part.toFixed(3));
      return `${median(own).toFixed(2)}: ${parts[0]} (${parts[1]}..${parts[2]})`;
    }),
  ]);
  const header = ['clients', 'side', 'measured', ...keys];
  return `${environment.cpu}, ${environment.kernel}; ${embeddings}; medians, and ratios to "without"\n\n${markdownTable(header, cells).join('\n')}\n`;
}
