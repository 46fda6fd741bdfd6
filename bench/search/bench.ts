/**
 * `npm run bench -- search`: recall, latency and throughput of the engine over N chunks, beside an exhaustive scan of the
 * same vectors in the same run.
 *
 * Recall is compared with an exhaustive scan of the same int8 vectors by the engine's exact plan: both sides return
 * `top_k` chunks, each document counts by its best chunk among them, and recall@10 and @100 are shares of the first 10
 * and 100 documents of the scan. With `MAXSIMD_ENGINE_DEVICE=cuda:0` the engine scores on that GPU, once its segments are there.
 */
import path from 'node:path';
import { parseConfig } from '../../src/app/config.ts';
import { engineDeviceOf } from '../../src/app/engine-device.ts';
import { createEngine } from '../../src/index/engine/native.ts';
import { describeEnvironment, root } from '../lib/environment.ts';
import { directory, integer, names, optional } from '../lib/options.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { mean } from '../lib/statistics.ts';
import { documentsOf, spread, type Corpus } from './corpus.ts';
import { openEmbeddings } from './embedding-directory.ts';
import { buildSealed, indexDirectory } from './engine-index.ts';
import { engineRows, parts, topK } from './engine-rows.ts';
import { renderTable, type SearchReport } from './report.ts';
import { synthesise } from './synthetic/synthetic.ts';

const settings = {
  chunks: integer(10_000, 'chunks of the index'),
  embeddings: optional('directory', 'real embeddings (search-embed makes them), not synthetic ones'),
  meanRows: integer(64, 'mean token vectors of a synthetic chunk'),
  queries: integer(200, 'queries'),
  searches: integer(500, 'searches of one client'),
  budgetMs: integer(10_000, 'after so long a row stops measuring latency or throughput'),
  parts: names(parts, 'what to measure'),
  threads: integer(0, 'threads of the engine; 0 = one a core', 0),
  seed: integer(1, 'seed of the synthetic vectors', 0),
  cache: directory(
    path.join(root, 'build', 'bench-search'),
    'indexes and exhaustive rankings are kept there',
  ),
};

type Options = OptionsOf<typeof settings>;

export const search = benchmark({
  name: 'search',
  summary: 'recall, latency and throughput of the engine, beside an exhaustive scan',
  settings,
  run,
  render: renderTable,
});

async function run(options: Options): Promise<SearchReport> {
  const engine = createEngine({
    threads: options.threads,
    kernel: 'auto',
    ...engineDeviceOf(parseConfig(options.environment)),
  });
  try {
    const corpus = openCorpus(options);
    const queries = spread(corpus.queries, options.queries);
    const effort = {
      searches: options.searches,
      budgetMs: options.budgetMs,
      clients: [1, 2, 4].map((factor) => factor * engine.info.threads),
    };
    const folder = indexDirectory(options.cache, corpus);
    const index = { engine, corpus };
    const sealed = await buildSealed(index, folder, options.onProgress);
    const wanted = new Set(options.parts);
    const { rows, skipped } = await engineRows({ ...options, parts: wanted, index, sealed, queries, effort });
    return {
      environment: describeEnvironment(options.command, engine.device()?.name ?? engine.info.kernel, [
        engine.info.threads,
      ]),
      settings: {
        embeddings: corpus.description,
        dim: corpus.dim,
        documents: documentsOf(corpus),
        queries: queries.length,
        query_rows_mean: mean(queries.map((query) => query.rows)),
        top_k: topK,
        seed: options.seed,
      },
      rows,
      skipped,
    };
  } finally {
    engine.close();
  }
}

function openCorpus({ embeddings, chunks, meanRows, queries, seed }: Options): Corpus {
  if (embeddings !== undefined) return openEmbeddings(embeddings, chunks);
  return synthesise({ chunks, meanRows, queries, seed });
}
