/**
 * `npm run bench -- newcomer`: how long somebody who has the packages alone needs, from an empty folder, until documents are
 * imported and searched, and until the application has moved to a second model without a failed search.
 */
import { realpathSync } from 'node:fs';
import path from 'node:path';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { scratchFolder } from '../lib/endings.ts';
import { describeEnvironment, root, type Environment } from '../lib/environment.ts';
import { beir, directory, integer, optional } from '../lib/options.ts';
import { quantile } from '../lib/statistics.ts';
import { markdownTable } from '../lib/table.ts';
import { readTexts } from '../lib/texts.ts';
import { walk, type Step } from './path.ts';

const settings = {
  packages: directory('build/release', 'what `npm run release` left'),
  documents: integer(5000, 'documents'),
  beir,
  model: directory('test/fixtures/colbert-tiny/1', 'the export of the second model'),
  folder: optional('directory', 'an empty folder, which is kept'),
};

export const newcomer = benchmark({
  name: 'newcomer',
  summary: 'the steps of a newcomer, from the packages to a second model',
  settings,
  run,
  render,
});

interface NewcomerReport {
  readonly environment: Environment;
  readonly texts: string;
  readonly steps: readonly Step[];
  readonly seconds: number;
  /** By the application, from the first import to the end. */
  readonly searches: {
    readonly answered: number;
    readonly failures: readonly string[];
    readonly p50_ms: number;
    readonly p99_ms: number;
    readonly longest_ms: number;
  };
}

async function run(options: OptionsOf<typeof settings>): Promise<NewcomerReport> {
  const texts = await readTexts(options.documents, options.beir);
  using scratch = scratchFolder('newcomer');
  const { steps, searched } = await walk({
    folder: realpathSync(options.folder ?? scratch.path),
    packages: path.resolve(root, options.packages),
    documents: texts.documents.map((text, at) => ({ doc_id: String(at), text })),
    queries: texts.queries,
    model: path.resolve(root, options.model),
    environment: options.environment,
    onProgress: options.onProgress,
  });
  const { waits, failures } = searched;
  return {
    environment: describeEnvironment(options.command, 'auto', []),
    texts: texts.name,
    steps,
    seconds: steps.reduce((sum, { seconds }) => sum + seconds, 0),
    searches: {
      answered: waits.length,
      failures,
      p50_ms: quantile(waits, 0.5),
      p99_ms: quantile(waits, 0.99),
      longest_ms: Math.max(...waits),
    },
  };
}

function render({ steps, seconds, searches }: NewcomerReport): string {
  const rows = steps.map(({ step, seconds: each, documents }) => [
    step,
    each.toFixed(1),
    documents === undefined ? '' : `${documents} documents, ${(documents / each).toFixed(1)} a second`,
  ]);
  const { answered, failures, p50_ms, p99_ms, longest_ms } = searches;
  const ms = [p50_ms, p99_ms, longest_ms].map((each) => each.toFixed(0));
  return [
    ...markdownTable(['step', 's', ''], [...rows, ['together', seconds.toFixed(1), '']]),
    `${answered} searches answered, ${failures.length} failed; p50 ${ms[0]} ms, p99 ${ms[1]} ms, longest ${ms[2]} ms`,
    ...failures.slice(0, 10),
    '',
  ].join('\n');
}
