/** Command line of the capacity benchmark. */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { integer, positiveNumber } from '../options.ts';
import { writeJson } from '../write-json.ts';
import { runCapacityBench } from './bench.ts';
import { compareReports } from './compare.ts';
import { renderHtml } from './page.ts';
import { createProgress } from './progress.ts';
import { formatNumber, type CapacityReport } from './report.ts';
import { parseMix } from './schedule.ts';

export const capacityUsage = `capacity [--mix search=1,upsert=0,score=0] [--p99-ms 100] [--step-seconds 15] [--first-rate 5] [--rates 5,10,20]
           [--beir DIR] [--documents 500] [--seed 1] [--url URL --key KEY [--metrics-url URL]] [--json FILE] [--html FILE]
  capacity --compare A.json B.json`;

const interruptedCode = 130;

export async function capacityCommand(
  args: readonly string[],
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      mix: { type: 'string', default: 'search=1' },
      'p99-ms': { type: 'string', default: '100' },
      'step-seconds': { type: 'string', default: '15' },
      'first-rate': { type: 'string', default: '5' },
      rates: { type: 'string', default: '' },
      beir: { type: 'string' },
      documents: { type: 'string', default: '500' },
      seed: { type: 'string', default: '1' },
      url: { type: 'string' },
      key: { type: 'string' },
      'metrics-url': { type: 'string' },
      json: { type: 'string' },
      html: { type: 'string' },
      compare: { type: 'boolean', default: false },
    },
  });
  if (values.compare) {
    const [a, b] = positionals.map((file) => JSON.parse(readFileSync(file, 'utf8')) as CapacityReport);
    if (a === undefined || b === undefined) throw new Error('--compare takes two reports');
    process.stdout.write(compareReports(a, b));
    return;
  }
  for (const stream of [process.stdout, process.stderr]) {
    // A terminal that has gone takes no more words; the run still ends in order.
    if (stream.isTTY) stream.on('error', () => undefined);
  }
  const progress = createProgress(process.stderr);
  const write = (report: CapacityReport): void => {
    writeJson(values.json, report);
    if (values.html !== undefined) writeFileSync(values.html, renderHtml(report));
  };
  const report = await runCapacityBench({
    mix: parseMix(values.mix),
    p99Ms: positiveNumber(values['p99-ms'], 'p99-ms'),
    stepSeconds: positiveNumber(values['step-seconds'], 'step-seconds'),
    firstRate: positiveNumber(values['first-rate'], 'first-rate'),
    rates: values.rates === '' ? [] : values.rates.split(',').map((rate) => positiveNumber(rate, 'rates')),
    beir: values.beir,
    documents: integer(values.documents, 'documents'),
    seed: integer(values.seed, 'seed', 0),
    remote:
      values.url === undefined
        ? undefined
        : { url: values.url, apiKey: values.key ?? '', metricsUrl: values['metrics-url'] },
    environment,
    command,
    signal: interruptSignal(() => progress.tell('interrupted: waiting for what is open; again = at once')),
    progress,
    onReport: write,
  });
  write(report);
  const { capacity_per_second: capacity, settings, verdict } = report;
  process.stdout.write(
    `${capacity === null ? 'no rate' : `${formatNumber(capacity)} requests/s`} at p99 <= ${settings.p99_ms} ms${report.interrupted ? ' (interrupted)' : ''}; gave out: ${verdict.resource} (${verdict.reason})\n`,
  );
  if (report.interrupted) process.exitCode = interruptedCode;
}

/** The first interrupt ends the run with a report, the second one the process. */
function interruptSignal(onInterrupt: () => void): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(interruptedCode);
      controller.abort();
      onInterrupt();
    });
  }
  return controller.signal;
}
