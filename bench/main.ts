/** `npm run bench -- NAME [options]`: runs one benchmark, prints its table and writes JSON where asked. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runKernelBench, type KernelReport } from './kernel/bench.ts';

const usage = `usage: npm run bench -- kernel [--dims 128,96] [--threads 1,2] [--chunks 20000] [--rounds 7] [--seed 1] [--json FILE]
`;

main(process.argv.slice(2));

function main(args: readonly string[]): void {
  const [name, ...rest] = args;
  if (name !== 'kernel') {
    process.stderr.write(usage);
    process.exitCode = 2;
    return;
  }
  const { values } = parseArgs({
    args: rest,
    options: {
      dims: { type: 'string', default: '128,96' },
      threads: { type: 'string', default: '1,2' },
      chunks: { type: 'string', default: '20000' },
      rounds: { type: 'string', default: '7' },
      seed: { type: 'string', default: '1' },
      json: { type: 'string' },
    },
  });
  const report = runKernelBench({
    dims: values.dims.split(',').map(Number),
    threads: values.threads.split(',').map(Number),
    chunks: Number(values.chunks),
    rounds: Number(values.rounds),
    seed: Number(values.seed),
    command: `npm run bench -- ${args.join(' ')}`,
  });
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  process.stdout.write(renderKernelReport(report));
}

function renderKernelReport(report: KernelReport): string {
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
