/** Command line of the kernel benchmark. */
import { parseArgs } from 'node:util';
import { integer, integers } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { runKernelBench, type KernelReport } from './bench.ts';

export const kernelUsage =
  'kernel [--dims 128,96] [--threads 1,2] [--chunks 20000] [--rounds 7] [--seed 1] [--without NAME,...] [--json FILE]';

export async function kernelCommand(args: readonly string[], command: string): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      dims: { type: 'string', default: '128,96' },
      threads: { type: 'string', default: '1,2' },
      chunks: { type: 'string', default: '20000' },
      rounds: { type: 'string', default: '7' },
      seed: { type: 'string', default: '1' },
      without: { type: 'string', default: '' },
      json: { type: 'string' },
    },
  });
  const report = await runKernelBench({
    dims: integers(values.dims, 'dims'),
    threads: integers(values.threads, 'threads'),
    chunks: integer(values.chunks, 'chunks'),
    rounds: integer(values.rounds, 'rounds'),
    seed: integer(values.seed, 'seed', 0),
    bandwidthMebibytes: 1024,
    without: values.without.split(','),
    command,
  });
  writeJson(values.json, report);
  process.stdout.write(render(report));
}

function render(report: KernelReport): string {
  const header =
    '| contender | dim | threads | scenario | thousand chunks/s (min..max) | top-10 | top-100 | score error |';
  const lines = report.rows.map((row) => {
    const rate = row.thousand_chunks_per_second;
    return `| ${row.contender} | ${row.dim} | ${row.threads} | ${row.scenario} | ${rate.median.toFixed(0)} (${rate.minimum.toFixed(0)}..${rate.maximum.toFixed(0)}) | ${row.top10_overlap.toFixed(3)} | ${row.top100_overlap.toFixed(3)} | ${row.relative_score_error.toExponential(1)} |`;
  });
  const ratios = Object.entries(report.ratio_details).map(
    ([name, ratio]) =>
      `${name}: ${ratio.value === null ? `null (${ratio.reason})` : `${ratio.value.toFixed(2)} against ${ratio.against}`}`,
  );
  return `${report.environment.cpu}, commit ${report.environment.commit}\n\n${header}\n|---|---|---|---|---|---|---|---|\n${lines.join('\n')}\n\n${ratios.join('\n')}\n`;
}
