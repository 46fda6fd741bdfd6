/**
 * `npm run bench -- kernel`: builds the native benchmark, runs it for each dimension and thread count, and turns the samples into
 * rows and ratios. A ratio is the median of paired rounds of one run with one thread and 128 dimensions. It is null, with a
 * reason, where this CPU lacks the instruction set.
 */
import { execFileSync, spawnSync, type ExecFileSyncOptions } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { describeEnvironment, root, type Environment } from '../lib/environment.ts';
import { measureAddonOverhead } from './addon-overhead.ts';
import { integer, integers } from '../lib/options.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { median, pairedRatios, spread, type Spread } from '../lib/statistics.ts';
import { markdownTable, spreadText } from '../lib/table.ts';

const samplesSchema = z.object({ wall_s: z.array(z.number()), cpu_s: z.array(z.number()) });
const contenderSchema = z.object({
  name: z.string(),
  family: z.enum(['maxsimd', 'numkong']),
  amx: z.boolean(),
  packed_bytes: z.number(),
  top10: z.number(),
  top100: z.number(),
  relative_error: z.number(),
  scenarios: z.object({ hot: samplesSchema, memory: samplesSchema }),
});
const runSchema = z.object({
  dim: z.number(),
  query_rows: z.number(),
  chunks: z.number(),
  hot_chunks: z.number(),
  threads: z.number(),
  seed: z.number(),
  contenders: z.array(contenderSchema),
});

type Run = z.infer<typeof runSchema>;
type Contender = z.infer<typeof contenderSchema>;
type Scenario = keyof Contender['scenarios'];

interface KernelRow {
  readonly contender: string;
  readonly dim: number;
  readonly threads: number;
  readonly scenario: Scenario;
  readonly chunks: number;
  /** By the CPU seconds of threads. */
  readonly thousand_chunks_per_second: Spread;
  readonly thousand_chunks_per_second_wall: number;
  readonly packed_bytes: number;
  readonly top10_overlap: number;
  readonly top100_overlap: number;
  readonly relative_score_error: number;
}

interface RatioReport {
  readonly value: number | null;
  readonly spread?: Spread;
  readonly against?: string;
  readonly reason?: string;
}

interface KernelReport {
  readonly environment: Environment;
  readonly rows: readonly KernelRow[];
  readonly ratios: Readonly<Record<string, number | null>>;
  readonly ratio_details: Readonly<Record<string, RatioReport>>;
}

const settings = {
  dims: integers('128,384', 'dimensions of token vectors'),
  bits: integers('8,4,2,1', 'bits of a component of our rows'),
  threads: integers('1,2', 'thread counts'),
  chunks: integer(5_000, 'chunks that are read from memory'),
  queryRows: integer(32, 'query tokens'),
  rounds: integer(7, 'rounds'),
  seed: integer(1, 'seed of the vectors', 0),
};

type Options = OptionsOf<typeof settings>;

export const kernel = benchmark({
  name: 'kernel',
  summary: 'MaxSim kernels beside those of NumKong',
  settings,
  run: measureKernels,
  render,
});

async function measureKernels(options: Options): Promise<KernelReport> {
  const program = buildKernelBench();
  const runs = options.dims.flatMap((dim) =>
    options.threads.map((threads) => runOnce(program, dim, threads, options)),
  );
  const main = runs.find((run) => run.dim === 128 && run.threads === 1) ?? runs[0];
  if (main === undefined) throw new Error('nothing was measured');
  const details = { ...ratiosOf(main), addon_overhead: await addonOverhead(options) };
  return {
    environment: describeEnvironment(options.command, ours(main)[0]?.name ?? 'none', options.threads),
    rows: runs.flatMap(rowsOf),
    ratios: Object.fromEntries(Object.entries(details).map(([name, ratio]) => [name, ratio.value])),
    ratio_details: details,
  };
}

/** Greater than 1 means that the way through the addon costs more than the kernel. */
async function addonOverhead({ rounds, seed }: Options): Promise<RatioReport> {
  const ratios = await measureAddonOverhead({ dim: 128, tokens: 32, chunks: 500, rounds, seed });
  return { value: median(ratios), spread: spread(ratios), against: 'the kernel alone' };
}

/** The path of the built program. */
function buildKernelBench(): string {
  const directory = path.join(root, 'build', 'bench-kernel');
  mkdirSync(directory, { recursive: true });
  const quiet: ExecFileSyncOptions = { stdio: ['ignore', 2, 2] };
  execFileSync(
    'cmake',
    ['-S', path.join(root, 'bench', 'kernel'), '-B', directory, '-DCMAKE_BUILD_TYPE=Release'],
    quiet,
  );
  execFileSync('cmake', ['--build', directory, '--parallel', '2'], quiet);
  return path.join(directory, 'kernel_bench');
}

function runOnce(program: string, dim: number, threads: number, options: Options): Run {
  const args = Object.entries({
    dim,
    threads,
    chunks: options.chunks,
    hot: Math.min(500, options.chunks),
    'query-rows': options.queryRows,
    rounds: options.rounds,
    seed: options.seed,
  })
    .concat(options.bits.map((bits) => ['bits', bits]))
    .flatMap(([name, value]) => [`--${name}`, String(value)]);
  const result = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 26,
  });
  if (result.status !== 0)
    throw new Error(`${path.basename(program)} ${args.join(' ')} failed: ${result.status ?? result.signal}`);
  return runSchema.parse(JSON.parse(result.stdout));
}

function rowsOf(run: Run): readonly KernelRow[] {
  return run.contenders.flatMap((contender) =>
    (['hot', 'memory'] as const).map((scenario) => {
      const chunks = scenario === 'memory' ? run.chunks : run.hot_chunks;
      const samples = contender.scenarios[scenario];
      const rate = (seconds: number): number => chunks / seconds / 1000;
      return {
        contender: contender.name,
        dim: run.dim,
        threads: run.threads,
        scenario,
        chunks,
        thousand_chunks_per_second: spread(samples.cpu_s.map((seconds) => rate(seconds / run.threads))),
        thousand_chunks_per_second_wall: rate(median(samples.wall_s)),
        packed_bytes: contender.packed_bytes,
        top10_overlap: contender.top10,
        top100_overlap: contender.top100,
        relative_score_error: contender.relative_error,
      };
    }),
  );
}

function ours(run: Run): readonly Contender[] {
  return run.contenders.filter((contender) => contender.family === 'maxsimd');
}

/** The ratios of the project's goals. Above 1, ours is faster. */
function ratiosOf(run: Run): Record<string, RatioReport> {
  const best = ours(run)[0];
  const named = (name: string): Contender | undefined =>
    run.contenders.find((contender) => contender.name === name);
  const fastest = (contenders: readonly Contender[], scenario: Scenario): Contender | undefined =>
    contenders.toSorted(
      (a, b) => median(a.scenarios[scenario].cpu_s) - median(b.scenarios[scenario].cpu_s),
    )[0];
  const numkong = run.contenders.filter((contender) => contender.family === 'numkong');
  const against = (
    mine: Contender | undefined,
    peer: Contender | undefined,
    scenario: Scenario,
    reason: string,
  ): RatioReport => {
    if (mine === undefined || peer === undefined) return { value: null, reason };
    const ratios = pairedRatios(peer.scenarios[scenario].cpu_s, mine.scenarios[scenario].cpu_s);
    return { value: median(ratios), spread: spread(ratios), against: peer.name };
  };
  const vnni = named('maxsimd_avx512vnni') ?? named('maxsimd_avxvnni');
  const withoutAmx = numkong.filter((contender) => !contender.amx);
  return {
    hot_vs_numkong_best: against(best, fastest(numkong, 'hot'), 'hot', 'no NumKong backend runs here'),
    memory_vs_numkong_bf16: against(
      best,
      fastest(
        numkong.filter((contender) => contender.name.endsWith('_bf16')),
        'memory',
      ),
      'memory',
      'no NumKong bf16 backend runs here',
    ),
    vnni_vs_numkong_best_without_amx: against(
      vnni,
      fastest(withoutAmx, 'hot'),
      'hot',
      'this CPU has no VNNI',
    ),
    avx2_vs_numkong_haswell: against(
      named('maxsimd_avx2'),
      fastest(
        numkong.filter((contender) => contender.name.includes('haswell')),
        'hot',
      ),
      'hot',
      'this CPU has no AVX2',
    ),
  };
}

function render({ environment, rows, ratio_details }: KernelReport): string {
  const header = [
    'contender',
    'dim',
    'threads',
    'scenario',
    'thousand chunks/s (min..max)',
    'top-10',
    'top-100',
    'score error',
  ];
  const table = rows.map((row) => [
    row.contender,
    row.dim,
    row.threads,
    row.scenario,
    spreadText(row.thousand_chunks_per_second, 0),
    row.top10_overlap.toFixed(3),
    row.top100_overlap.toFixed(3),
    row.relative_score_error.toExponential(1),
  ]);
  const ratios = Object.entries(ratio_details).map(
    ([name, { value, reason, against }]) =>
      `${name}: ${value === null ? `null (${reason})` : `${value.toFixed(2)} against ${against}`}`,
  );
  return [
    `${environment.cpu}, commit ${environment.commit}`,
    '',
    ...markdownTable(header, table),
    '',
    ...ratios,
    '',
  ].join('\n');
}
