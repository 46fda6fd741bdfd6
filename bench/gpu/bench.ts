/**
 * `npm run bench -- gpu`: how fast a device is through onnxruntime-node, without a service around it. It first checks that every
 * node of the graph runs on the device, and that its rows are those of the CPU graph, alone and in a batch. Then it measures
 * the rate over batch sizes, its share of the device's peak, and the batch size to set. Each batch runs with the int8 rows,
 * with f32 rows, and with next to nothing copied out, which shows what copying costs.
 */
import { InferenceSession, type Tensor } from 'onnxruntime-node';
import { parseConfig } from '../../src/app/config.ts';
import { cudaProblem, runtimeVersion } from '../../src/encoder/inference/cuda/cuda-library.ts';
import { documentSequence } from '../../src/encoder/model/colbert-rules.ts';
import { loadModel, type ServedModel } from '../../src/encoder/model/served-model.ts';
import { modelDirectoryOf } from '../../src/app/models/model-choice.ts';
import { agreementOf, type Agreement } from '../lib/model/agreement.ts';
import { type Device, deviceName } from '../lib/model/device.ts';
import { type Feeds, feedsOf, openSession, settingsFor } from '../lib/model/onnxruntime-session.ts';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import { beir, device, integer, integers, positiveNumber } from '../lib/options.ts';
import { benchmark, type OptionsOf } from '../lib/benchmark.ts';
import { spread, type Spread } from '../lib/statistics.ts';
import { markdownTable, spreadText } from '../lib/table.ts';
import { chunkTokensMax, readTexts } from '../lib/texts.ts';
import { nodesOf, type NodeTimes } from './nodes.ts';

const settings = {
  device: device('cuda:0'),
  rounds: integer(20, 'runs of each batch'),
  batchTokens: integers('1024,2048,4096,8192,16384,32768,65536', 'padded tokens of the batches to measure'),
  peakTflops: positiveNumber(
    989,
    'f16 operations of the device at its best, in units of 10^12 a second (989: H100 and H200 SXM)',
  ),
  tokenMflop: positiveNumber(
    47,
    'operations of the model for a token, in millions (47: the default model, in texts of 272)',
  ),
  beir,
};

export const gpu = benchmark({
  name: 'gpu',
  summary: 'how fast a device is without a service, and the batch size to set',
  settings,
  run: measureDevice,
  render,
});

interface GpuRow {
  readonly batch_tokens: number;
  /** The outputs that are copied out of the graph. */
  readonly outputs: 'int8' | 'f32' | 'weights only';
  readonly output_bytes: number;
  readonly milliseconds: Spread;
  readonly tokens_per_second: number;
  /** A share of what the device could give at its best. */
  readonly share_of_peak: number;
}

interface GpuReport {
  readonly environment: Environment;
  readonly settings: {
    readonly model: string;
    readonly graph: string;
    readonly device: string;
    readonly onnxruntime: string;
    readonly peak_tflops: number;
    readonly token_mflop: number;
  };
  /** Null when every node runs on the device, otherwise the message of the runtime. */
  readonly nodes_elsewhere: string | null;
  /** One batch of the first size. */
  readonly nodes: readonly NodeTimes[];
  /** `output` rows of this device's graph with those of the CPU's, on the CPU. */
  readonly agreement_with_cpu_graph: Agreement;
  /** Rows of texts alone and among others: int8 if the graph gives them, or else f32. */
  readonly alone_and_in_batch: {
    readonly components: number;
    readonly differing_share: number;
    readonly steps_max: number;
  };
  readonly rows: readonly GpuRow[];
  /** The value for `--batch-tokens` of an encoder. */
  readonly best_batch_tokens: number;
}

/** Positions of every text of the timed batches: the longest default chunk, padded to the step of a GPU. */
const textLength = 272;
const comparedTexts = 24;
const rateTolerance = 0.03;

async function measureDevice(options: OptionsOf<typeof settings>): Promise<GpuReport> {
  const { device: given, rounds, batchTokens, onProgress } = options;
  const problem = given.provider === 'cuda' ? cudaProblem() : undefined;
  if (problem !== undefined) throw new Error(`cuda: ${problem}`);
  const model = await loadModel(await modelDirectoryOf(parseConfig(options.environment)));
  const { documents } = await readTexts(256, options.beir);
  const window = Math.min(chunkTokensMax, model.windowTokensMax);
  const texts = documents.map(
    (text) => documentSequence(model.rules, model.tokenizer.encode(text).subarray(0, window)).ids,
  );
  onProgress('loading the graphs');
  const session = await openSession(settingsFor(model, given));
  const elsewhere = await nodesElsewhere(model, given);
  const some = texts.slice(0, comparedTexts);
  onProgress('comparing with the CPU');
  const cpu = await openSession(settingsFor(model, { ...given, provider: 'cpu' }));
  const agreement = agreementOf(
    await outputsOf(cpu, model, some),
    await outputsOf(session, model, some),
    model.dim,
  );
  const independence = await aloneAndInBatch(session, model, some);
  const rows: GpuRow[] = [];
  const rates: BatchRate[] = [];
  for (const tokens of batchTokens) {
    onProgress(`batches of ${tokens} padded tokens`);
    const measured = await measure(session, model, batchOf(model, texts, tokens), rounds);
    const shareOf = (rate: number): number => (rate * options.tokenMflop) / (options.peakTflops * 1e6);
    rows.push(...measured.map((row) => ({ ...row, share_of_peak: shareOf(row.tokens_per_second) })));
    rates.push({ batchTokens: tokens, tokensPerSecond: measured[0]!.tokens_per_second });
  }
  return {
    environment: describeEnvironment(options.command, 'none', [given.threads]),
    settings: {
      model: `${model.name}/${model.version}`,
      graph: model.session.graphs[given.provider].sha256,
      device: deviceName(given),
      onnxruntime: runtimeVersion(),
      peak_tflops: options.peakTflops,
      token_mflop: options.tokenMflop,
    },
    nodes_elsewhere: elsewhere,
    nodes: await nodesOf(
      settingsFor(model, given),
      batchOf(model, texts, batchTokens[0] ?? textLength).feeds,
    ),
    agreement_with_cpu_graph: agreement,
    alone_and_in_batch: independence,
    rows,
    best_batch_tokens: smallestNearBest(rates),
  };
}

interface BatchRate {
  readonly batchTokens: number;
  readonly tokensPerSecond: number;
}

/** The smallest batch within 3% of the best rate, because a query waits for the running batch. */
export function smallestNearBest(rates: readonly BatchRate[]): number {
  const best = Math.max(...rates.map(({ tokensPerSecond }) => tokensPerSecond));
  const near = rates.filter(({ tokensPerSecond }) => tokensPerSecond >= best * (1 - rateTolerance));
  return Math.min(...near.map(({ batchTokens }) => batchTokens));
}

/** With the fallback forbidden, a session that has a node for another device does not open. */
async function nodesElsewhere(model: ServedModel, { provider, index }: Device): Promise<string | null> {
  if (provider === 'cpu') return null;
  try {
    const session = await InferenceSession.create(model.session.graphs.cuda.file, {
      executionProviders: [{ name: 'cuda', deviceId: index }],
      extra: { session: { 'session.disable_cpu_ep_fallback': '1' } },
    });
    await session.release();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** f32 rows of each text, run alone. */
export async function outputsOf(
  session: Pick<InferenceSession, 'run'>,
  { session: { usesTokenTypeIds } }: Pick<ServedModel, 'session'>,
  texts: readonly Int32Array[],
): Promise<Float32Array[]> {
  const rows: Float32Array[] = [];
  for (const ids of texts) {
    const feeds = feedsOf({ ids, texts: 1, length: ids.length }, usesTokenTypeIds);
    const outputs = await session.run(feeds, ['output']);
    rows.push(outputs['output']!.data as Float32Array);
  }
  return rows;
}

/** Texts cut to one length, so that a batch of them needs no padding. */
async function aloneAndInBatch(
  session: InferenceSession,
  model: ServedModel,
  texts: readonly Int32Array[],
): Promise<GpuReport['alone_and_in_batch']> {
  const output = model.session.int8Output ?? 'output';
  const length = Math.min(...texts.map((ids) => ids.length));
  const cut = texts.map((ids) => ids.subarray(0, length));
  const run = async (batch: readonly Int32Array[]): Promise<Int8Array | Float32Array> => {
    const ids = Int32Array.from(batch.flatMap((each) => [...each]));
    const feeds = feedsOf({ ids, texts: batch.length, length }, model.session.usesTokenTypeIds);
    return (await session.run(feeds, [output]))[output]!.data as Int8Array | Float32Array;
  };
  const together = await run(cut);
  let differing = 0;
  let stepsMax = 0;
  for (const [text, ids] of cut.entries()) {
    const alone = await run([ids]);
    for (const [at, value] of alone.entries()) {
      const steps = Math.abs(value - together[text * alone.length + at]!);
      if (steps > 0) differing++;
      stepsMax = Math.max(stepsMax, steps);
    }
  }
  return {
    components: together.length,
    differing_share: differing / together.length,
    steps_max: stepsMax,
  };
}

/** As many texts of one length as fit. */
function batchOf(
  { session: { usesTokenTypeIds } }: ServedModel,
  texts: readonly Int32Array[],
  batchTokens: number,
): { readonly tokens: number; readonly feeds: Feeds } {
  const count = Math.max(1, Math.floor(batchTokens / textLength));
  const ids = new Int32Array(count * textLength);
  const stream = texts.flatMap((each) => [...each]);
  for (let at = 0; at < ids.length; at++) ids[at] = stream[at % stream.length]!;
  const feeds = feedsOf({ ids, texts: count, length: textLength }, usesTokenTypeIds);
  return { tokens: ids.length, feeds };
}

/** The sets of outputs in turn within a round. */
async function measure(
  session: InferenceSession,
  { session: names, dim }: ServedModel,
  { tokens, feeds }: ReturnType<typeof batchOf>,
  rounds: number,
): Promise<readonly Omit<GpuRow, 'share_of_peak'>[]> {
  const all = [
    { outputs: 'int8', fetches: [names.int8Output, names.scaleOutput], bytes: dim + 4 },
    { outputs: 'f32', fetches: ['output'], bytes: dim * 4 },
    { outputs: 'weights only', fetches: [names.tokenWeightOutput], bytes: 4 },
  ] as const;
  // Not every model has them all.
  const sets = all.filter(({ fetches }) => fetches.every((name) => name !== undefined));
  const times = new Map<string, number[]>(sets.map(({ outputs }) => [outputs, []]));
  for (let round = -1; round < rounds; round++) {
    for (const { outputs, fetches } of sets) {
      const startedAt = performance.now();
      const result: Record<string, Tensor> = await session.run(feeds, fetches as readonly string[]);
      const milliseconds = performance.now() - startedAt;
      for (const tensor of Object.values(result)) tensor.dispose();
      // The first round warms up.
      if (round >= 0) times.get(outputs)?.push(milliseconds);
    }
  }
  return sets.map(({ outputs, bytes }) => {
    const milliseconds = spread(times.get(outputs) ?? []);
    return {
      batch_tokens: tokens,
      outputs,
      output_bytes: bytes * tokens,
      milliseconds,
      tokens_per_second: Math.round((tokens / milliseconds.median) * 1000),
    };
  });
}

function render(report: GpuReport): string {
  const { settings: chosen, rows, agreement_with_cpu_graph: agreement, alone_and_in_batch: alone } = report;
  const header = ['padded tokens', 'outputs', 'KiB out', 'ms, median (min..max)', 'tokens/s', 'of the peak'];
  const table = rows.map((row) => [
    row.batch_tokens,
    row.outputs,
    (row.output_bytes / 1024).toFixed(0),
    spreadText(row.milliseconds, 2),
    row.tokens_per_second,
    `${(row.share_of_peak * 100).toFixed(1)}%`,
  ]);
  const providers = new Set(report.nodes.map(({ provider }) => provider));
  return [
    `${chosen.model} on ${chosen.device}, onnxruntime ${chosen.onnxruntime}, graph ${chosen.graph.slice(0, 12)}`,
    `nodes on another device: ${report.nodes_elsewhere ?? 'none'}; nodes ran on ${[...providers].join(', ')}`,
    `cosine to the CPU graph: mean ${agreement.mean_cosine.toFixed(5)}, minimum ${agreement.minimum_cosine.toFixed(5)}`,
    `alone and in a batch: ${(alone.differing_share * 100).toFixed(3)}% of components differ, by ${alone.steps_max} at most`,
    '',
    ...markdownTable(header, table),
    '',
    `--batch-tokens ${report.best_batch_tokens} is the smallest batch within 3% of the best rate`,
    '',
  ].join('\n');
}
