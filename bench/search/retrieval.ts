/**
 * `npm run bench -- retrieval`: a BEIR collection through HTTP, as a user sends it. The command line imports it into a fresh service
 * and evaluates its queries. The report has the time of the import and the quality.
 */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { z } from 'zod';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { scratchFolder } from '../lib/endings.ts';
import { describeEnvironment, root, type Environment } from '../lib/environment.ts';
import { beir, integer } from '../lib/options.ts';
import { scrape } from '../lib/service/metrics.ts';
import { startServer } from '../lib/service/server-process.ts';

const settings = {
  beir,
  concurrency: integer(1, 'searches at a time'),
};

export const retrieval = benchmark({
  name: 'retrieval',
  summary: 'import of a BEIR collection and its quality, through HTTP',
  settings,
  run,
  render,
});

/** The output of `maxsimd import --json` and `maxsimd eval --json`. */
const imported = z.object({ done: z.number(), failed: z.number() });
const evaluated = z.object({
  queries: z.number(),
  ndcg_at_10: z.number(),
  recall_at_100: z.number(),
  latency_ms: z.record(z.string(), z.number()),
});

interface RetrievalReport extends z.infer<typeof evaluated> {
  readonly environment: Environment;
  readonly settings: {
    readonly collection: string;
    readonly concurrency: number;
    /** The encoders run on these. */
    readonly providers: readonly string[];
  };
  readonly documents: number;
  readonly failed_documents: number;
  /** The whole command, from its start to its end. */
  readonly import_seconds: number;
}

async function run(options: OptionsOf<typeof settings>): Promise<RetrievalReport> {
  const { beir: directory, concurrency, environment, onProgress } = options;
  if (directory === undefined) throw new Error('--beir names the collection');
  const collection = path.basename(path.resolve(directory));
  const server = await startServer({ environment });
  try {
    using scratch = scratchFolder('retrieval');
    const command = async (name: string, ...args: readonly string[]): Promise<unknown> =>
      JSON.parse(
        await commandLine([name, directory, '--index', collection, ...args, '--json'], {
          ...environment,
          MAXSIMD_URL: server.url,
          MAXSIMD_API_KEY: server.apiKey,
        }),
      );
    onProgress(`importing ${collection}`);
    const startedMs = performance.now();
    const { done, failed } = imported.parse(
      await command('import', '--state', path.join(scratch.path, 'state')),
    );
    const importSeconds = (performance.now() - startedMs) / 1000;
    onProgress(`evaluating ${collection}`);
    const quality = evaluated.parse(await command('eval', '--concurrency', String(concurrency)));
    const providers = [...(await scrape(server.metricsUrl)).keys()].flatMap((line) => {
      const provider = /^maxsimd_encoder_info\{.*provider="([^"]*)"/.exec(line)?.[1];
      return provider === undefined ? [] : [provider];
    });
    return {
      environment: describeEnvironment(options.command, 'auto', []),
      settings: { collection, concurrency, providers: [...new Set(providers)] },
      documents: done,
      failed_documents: failed,
      import_seconds: importSeconds,
      ...quality,
    };
  } finally {
    await server.close();
  }
}

/** The standard output of a command. Its messages go to the terminal. */
async function commandLine(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(process.execPath, [path.join(root, 'src/cli/main.ts'), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.on('data', (data: Buffer) => (printed += data.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  // An import ends with 1 when documents were refused. Its report counts them.
  const isReport = code === 1 && args[0] === 'import' && printed !== '';
  if (code !== 0 && !isReport) throw new Error(`maxsimd ${args[0]} ended with ${code}: ${printed}`);
  return printed;
}

function render(report: RetrievalReport): string {
  const { settings: chosen, latency_ms: latency } = report;
  const ms = (name: string): string => (latency[name] ?? Number.NaN).toFixed(1);
  return [
    `${chosen.collection} on ${chosen.providers.join(', ')}`,
    `import: ${report.documents} documents, ${report.failed_documents} failed, ${report.import_seconds.toFixed(1)} s`,
    `nDCG@10 ${report.ndcg_at_10.toFixed(4)}, recall@100 ${report.recall_at_100.toFixed(4)} of ${report.queries} queries`,
    `a search: p50 ${ms('p50')} ms, p99 ${ms('p99')} ms, ${chosen.concurrency} at a time`,
    '',
  ].join('\n');
}
