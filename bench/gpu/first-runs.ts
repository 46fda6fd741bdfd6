/**
 * `npm run bench -- first-runs`: what the first batch of each padded shape costs more than a later one. The session and the
 * warm-up are the encoder's own. Then the most common shapes run three times in a row, in a shuffled order. The cost of the first
 * use of a kernel shows among the first shapes. The cost of each new shape shows everywhere.
 */
import { parseConfig } from '../../src/app/config.ts';
import { modelDirectoryOf } from '../../src/app/models/model-choice.ts';
import { cudaProblem, runtimeVersion } from '../../src/encoder/inference/cuda/cuda-library.ts';
import { SessionPool } from '../../src/encoder/inference/session-pool.ts';
import type { BatchKind } from '../../src/encoder/inference/session-protocol.ts';
import { loadModel, type ServedModel } from '../../src/encoder/model/served-model.ts';
import { paddedLengths, paddedTextCounts } from '../../src/encoder/scheduling/batch-shape.ts';
import { EncoderCore, type InferencePool } from '../../src/encoder/scheduling/encoder-core.ts';
import type { SchedulerOptions } from '../../src/encoder/scheduling/scheduler.ts';
import { inferenceThreads, parseEncoderArguments } from '../../src/encoder/server/arguments.ts';
import { tuning } from '../../src/encoder/server/tuning.ts';
import { checkGolden, warmUp } from '../../src/encoder/server/warm-up.ts';
import { collectYoungBuffers } from '../../src/process/process-tuning.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { deviceName } from '../lib/model/device.ts';
import { device, flag, integer } from '../lib/options.ts';
import { seededRandom } from '../lib/seeded-random.ts';
import { maximum, sum } from '../lib/statistics.ts';
import { markdownTable } from '../lib/table.ts';

const settings = {
  device: device('cuda:0'),
  cold: flag('leave the warm-up out'),
  seed: integer(1, 'seed of the order'),
  batchTokens: integer(0, 'padded tokens of a document batch; 0 = what encoders have on a GPU', 0),
};

type Options = OptionsOf<typeof settings>;

export const firstRuns = benchmark({
  name: 'first-runs',
  summary: 'what the first batch of each padded shape costs on a GPU',
  settings,
  run,
  render,
});

export interface Shape {
  readonly kind: BatchKind;
  readonly texts: number;
  /** Padded tokens of each text. */
  readonly length: number;
}

/** Milliseconds of the session's worker, copies included. */
export interface FirstRunsRow extends Shape {
  /** Whether the warm-up had run this shape. */
  readonly warmed: boolean;
  readonly first_ms: number;
  readonly second_ms: number;
  readonly third_ms: number;
}

/** The time that first runs took beyond third ones. */
interface Excess {
  readonly shapes: number;
  readonly more_than_5_ms: number;
  readonly longest_ms: number;
  readonly longest: string;
  readonly sum_ms: number;
}

interface FirstRunsReport {
  readonly environment: Environment;
  readonly settings: {
    readonly model: string;
    readonly graph: string;
    readonly device: string;
    readonly onnxruntime: string;
    readonly document_batch_tokens: number;
    readonly query_batch_tokens: number;
    readonly cold: boolean;
    readonly seed: number;
    /** Null: CUDA's own choice. */
    readonly cuda_module_loading: string | null;
  };
  /** Until the session had its graph. */
  readonly open_ms: number;
  /** With the golden check; null without a warm-up. */
  readonly warm_up_ms: number | null;
  readonly warm_up_batches: number;
  readonly totals: {
    readonly all: Excess;
    readonly warmed: Excess;
    readonly not_warmed: Excess;
    /** `sum_ms` of each tenth of the order. */
    readonly sum_ms_by_tenth: readonly number[];
  };
  /** In the order in which they ran. */
  readonly rows: readonly FirstRunsRow[];
}

/** A first run counts as slower beyond this. */
const slowerMs = 5;
/** Larger shapes, which scheduling makes too, are left out. */
const queryTextsMax = 32;
const queryPositionsMax = 64;
const documentPositionsMax = 288;

async function run(options: Options): Promise<FirstRunsReport> {
  const { device: given, seed, onProgress } = options;
  const problem = given.provider === 'cuda' ? cudaProblem() : undefined;
  if (problem !== undefined) throw new Error(`cuda: ${problem}`);
  collectYoungBuffers();
  const directory = await modelDirectoryOf(parseConfig(options.environment));
  const model = await loadModel(directory);
  const encoder = encoderArguments(directory, options);
  // On a CPU, too, the batches are those of a GPU.
  const limits = tuning(encoder, 'cuda');
  onProgress('opening the session');
  const openedAt = performance.now();
  const pool = await SessionPool.open({
    models: [model.session],
    provider: encoder.provider,
    deviceId: encoder.device,
    threads: inferenceThreads(encoder),
    workers: encoder.workers,
    stuckMs: encoder['stuck-ms'],
    // The batches that run fail with the reason.
    onFatal: () => undefined,
  });
  const openMs = performance.now() - openedAt;
  try {
    onProgress(options.cold ? 'no warm-up' : 'warm-up');
    const warm = options.cold ? undefined : await warmed(pool, model, limits);
    const shapes = shuffled(paddedShapes(model, limits), seed);
    onProgress(`${shapes.length} shapes`);
    const rows: FirstRunsRow[] = [];
    for (const shape of shapes) {
      const first = await runMsOf(pool, model, shape);
      const second = await runMsOf(pool, model, shape);
      const third = await runMsOf(pool, model, shape);
      const isWarm = warm?.shapes.has(nameOf(shape)) ?? false;
      rows.push({ ...shape, warmed: isWarm, first_ms: first, second_ms: second, third_ms: third });
    }
    return {
      environment: describeEnvironment(options.command, 'none', [given.threads]),
      settings: {
        model: `${model.name}/${model.version}`,
        graph: model.session.graphs[given.provider].sha256,
        device: deviceName(given),
        onnxruntime: runtimeVersion(),
        document_batch_tokens: limits.documentBatchTokens,
        query_batch_tokens: limits.queryBatchTokens,
        cold: options.cold,
        seed,
        cuda_module_loading: options.environment['CUDA_MODULE_LOADING'] ?? null,
      },
      open_ms: openMs,
      warm_up_ms: warm?.milliseconds ?? null,
      warm_up_batches: warm?.batches ?? 0,
      totals: totalsOf(rows),
      rows,
    };
  } finally {
    await pool.close();
  }
}

/** The arguments that the service gives an encoder with one session. */
function encoderArguments(
  directory: string,
  { device: { provider, index, threads }, batchTokens }: Pick<Options, 'device' | 'batchTokens'>,
): ReturnType<typeof parseEncoderArguments> {
  const given: Readonly<Record<string, string | number>> = {
    listen: 'unix:/none',
    'model-dir': directory,
    provider,
    device: index,
    threads: provider === 'cpu' ? threads : 0,
    workers: provider === 'cpu' ? 1 : 0,
    'batch-tokens': batchTokens,
  };
  return parseEncoderArguments(
    Object.entries(given).flatMap(([name, value]) => [`--${name}`, String(value)]),
  );
}

/** Does what an encoder does between opening its session and serving, and says which shapes ran. */
async function warmed(
  pool: SessionPool,
  model: ServedModel,
  limits: SchedulerOptions,
): Promise<{
  readonly shapes: ReadonlySet<string>;
  readonly batches: number;
  readonly milliseconds: number;
}> {
  const shapes = new Set<string>();
  let batches = 0;
  const watched: InferencePool = {
    workers: pool.workers,
    roomFor: (kind) => pool.roomFor(kind),
    run: async (batch) => {
      const { kind, paddedTexts: texts, paddedLength: length } = batch;
      shapes.add(nameOf({ kind, texts, length }));
      batches++;
      return pool.run(batch);
    },
  };
  const startedAt = performance.now();
  const core = new EncoderCore([model], watched, limits);
  await warmUp(core, 'cuda', limits);
  await checkGolden(core, pool.provider);
  return { shapes, batches, milliseconds: performance.now() - startedAt };
}

/** Queries in batches of up to 32, documents of up to 288 positions in batches of every size. */
export function paddedShapes(
  { rules }: Pick<ServedModel, 'rules'>,
  {
    lengthStep,
    queryBatchTokens,
    documentBatchTokens,
  }: Pick<SchedulerOptions, 'lengthStep' | 'queryBatchTokens' | 'documentBatchTokens'>,
): readonly Shape[] {
  const shapes = (kind: BatchKind, positionsMax: number, budget: number): readonly Shape[] =>
    paddedLengths(lengthStep, positionsMax).flatMap((length) =>
      paddedTextCounts(length, budget).map((texts) => ({ kind, texts, length })),
    );
  const queries = shapes('query', Math.min(queryPositionsMax, rules.queryPositionsMax), queryBatchTokens);
  const documentPositions = Math.min(documentPositionsMax, rules.documentPositionsMax);
  return [
    ...queries.filter(({ texts }) => texts <= queryTextsMax),
    ...shapes('document', documentPositions, documentBatchTokens),
  ];
}

/** Fisher and Yates. */
function shuffled<Item>(items: readonly Item[], seed: number): readonly Item[] {
  const random = seededRandom(seed);
  const order = [...items];
  for (let last = order.length - 1; last > 0; last--) {
    const chosen = Math.floor(random() * (last + 1));
    [order[last], order[chosen]] = [order[chosen]!, order[last]!];
  }
  return order;
}

/** Runs one batch without padding and without the scheduler. */
async function runMsOf(
  pool: SessionPool,
  { tokenizer }: ServedModel,
  { kind, texts, length }: Shape,
): Promise<number> {
  const { runMs } = await pool.run({
    kind,
    modelIndex: 0,
    ids: new Int32Array(texts * length).fill(tokenizer.encode('a')[0] ?? 0),
    lengths: new Uint32Array(texts).fill(length),
    attended: new Uint32Array(texts).fill(length),
    kept: undefined,
    rows: texts * length,
    paddedLength: length,
    paddedTexts: texts,
  });
  return runMs;
}

export function totalsOf(rows: readonly FirstRunsRow[]): FirstRunsReport['totals'] {
  const tenth = (at: number): number => Math.floor((at * rows.length) / 10);
  return {
    all: excessOf(rows),
    warmed: excessOf(rows.filter((row) => row.warmed)),
    not_warmed: excessOf(rows.filter((row) => !row.warmed)),
    sum_ms_by_tenth: Array.from(
      { length: 10 },
      (_, at) => excessOf(rows.slice(tenth(at), tenth(at + 1))).sum_ms,
    ),
  };
}

function excessOf(rows: readonly FirstRunsRow[]): Excess {
  const excesses = rows.map(({ first_ms, third_ms }) => Math.max(0, first_ms - third_ms));
  const longestMs = Math.max(0, maximum(excesses));
  const longest = rows[excesses.indexOf(longestMs)];
  return {
    shapes: rows.length,
    more_than_5_ms: excesses.filter((excess) => excess > slowerMs).length,
    longest_ms: longestMs,
    longest: longest === undefined ? '' : nameOf(longest),
    sum_ms: sum(excesses),
  };
}

function nameOf({ kind, texts, length }: Shape): string {
  return `${kind} ${texts} x ${length}`;
}

function render({ settings: chosen, open_ms, warm_up_ms, warm_up_batches, totals }: FirstRunsReport): string {
  const { all, warmed: warm, not_warmed: cold } = totals;
  const header = ['shapes', 'number', 'first runs 5 ms slower', 'longest, ms', 'of', 'all together, ms'];
  const table = Object.entries({ all, warmed: warm, 'not warmed': cold }).map(([name, excess]) => [
    name,
    excess.shapes,
    excess.more_than_5_ms,
    excess.longest_ms.toFixed(1),
    excess.longest,
    excess.sum_ms.toFixed(0),
  ]);
  return [
    `${chosen.model} on ${chosen.device}, onnxruntime ${chosen.onnxruntime}`,
    `open ${open_ms.toFixed(0)} ms; ${warm_up_ms === null ? 'no warm-up' : `warm-up ${warm_up_batches} batches, ${warm_up_ms.toFixed(0)} ms`}`,
    '',
    ...markdownTable(header, table),
    '',
    `by tenths of the order, ms: ${totals.sum_ms_by_tenth.map((ms) => ms.toFixed(0)).join(', ')}`,
    '',
  ].join('\n');
}
