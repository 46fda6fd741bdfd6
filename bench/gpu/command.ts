/** Command line of the GPU benchmark. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { device, integer, integers } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { type GpuReport, runGpuBench } from './bench.ts';

const batchTokensDefault = '1024,2048,4096,8192,16384,32768,65536';

export const gpuUsage = `gpu [--device cuda:0] [--rounds 20] [--batch-tokens ${batchTokensDefault}] [--beir DIR] [--json FILE]`;

export async function gpuCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      device: { type: 'string', default: 'cuda:0' },
      rounds: { type: 'string', default: '20' },
      'batch-tokens': { type: 'string', default: batchTokensDefault },
      beir: { type: 'string' },
      json: { type: 'string' },
    },
  });
  const { provider, device: index } = device(values.device, 'device');
  const report = await runGpuBench({
    device: { provider, index, threads: availableParallelism() },
    beir: values.beir,
    rounds: integer(values.rounds, 'rounds'),
    batchTokens: integers(values['batch-tokens'], 'batch-tokens'),
    environment,
    command,
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  writeJson(values.json, report);
  process.stdout.write(renderGpu(report));
}

export function renderGpu(report: GpuReport): string {
  const { settings, rows, agreement_with_cpu_graph: agreement, alone_and_in_batch: alone } = report;
  const lines = rows.map(({ batch_tokens, outputs, output_bytes, milliseconds, tokens_per_second }) =>
    [
      batch_tokens,
      outputs,
      (output_bytes / 1024).toFixed(0),
      `${milliseconds.median.toFixed(2)} (${milliseconds.minimum.toFixed(2)}..${milliseconds.maximum.toFixed(2)})`,
      tokens_per_second,
    ].join(' | '),
  );
  return [
    `${settings.model} on ${settings.device}, onnxruntime ${settings.onnxruntime}, graph ${settings.graph.slice(0, 12)}`,
    `nodes on another device: ${report.nodes_elsewhere ?? 'none'}`,
    `cosine to the CPU graph: mean ${agreement.mean_cosine.toFixed(5)}, minimum ${agreement.minimum_cosine.toFixed(5)}`,
    `alone and in a batch: ${(alone.differing_share * 100).toFixed(3)}% of int8 components differ, by ${alone.steps_max} steps at most`,
    '',
    '| padded tokens | outputs | KiB out | ms, median (min..max) | tokens/s |',
    '| --- | --- | --- | --- | --- |',
    ...lines.map((line) => `| ${line} |`),
    '',
    `MAXSIMD_BATCH_TOKENS=${report.best_batch_tokens} is the smallest batch within 3% of the best rate`,
    '',
  ].join('\n');
}
