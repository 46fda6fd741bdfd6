/** Command line of the capacity benchmark. */
import { benchmark } from '../lib/benchmark.ts';
import { runCapacityBench, settings, type CapacityOptions } from './bench.ts';
import type { IndexUse } from './observe.ts';
import { formatNumber, type CapacityReport } from './report.ts';

const interruptedCode = 130;

export const capacity = benchmark({
  name: 'capacity',
  summary: 'the highest rate of requests that a service answers within a latency target',
  settings,
  run,
  render,
});

async function run(options: CapacityOptions): Promise<CapacityReport> {
  for (const stream of [process.stdout, process.stderr]) {
    // When the terminal is closed, writing to it fails. The run still ends in order.
    if (stream.isTTY) stream.on('error', () => undefined);
  }
  const report = await runCapacityBench({
    ...options,
    signal: interruptSignal(() =>
      options.onProgress('interrupted: waiting for what is open; again = at once'),
    ),
  });
  options.save(report);
  if (report.interrupted) process.exitCode = interruptedCode;
  return report;
}

function render({
  capacity_per_second: rate,
  settings: { p99_ms, senders },
  rows,
  verdict,
  interrupted,
}: CapacityReport): string {
  const found = rate === null ? 'no rate' : `${formatNumber(rate)} requests/s`;
  const cut = interrupted ? ' (interrupted)' : '';
  const last = rows.at(-1);
  const indexes = last?.resources.indexes;
  return [
    `${found} at p99 <= ${p99_ms} ms${cut}; gave out: ${verdict.resource} (${verdict.reason})\n`,
    ...(last === undefined
      ? []
      : [
          `senders: ${senders}; the busiest used ${last.resources.busiestSenderCores.toFixed(2)} cores, and requests were sent ${formatNumber(last.send_lag_ms_p99)} ms late at p99\n`,
        ]),
    ...(indexes === undefined ? [] : [`${describeIndexes(indexes)}\n`]),
  ].join('');
}

/** Small indexes are scored exactly, larger ones by codes or lists, whichever is estimated to cost less. */
function describeIndexes({
  chunks,
  diskBytesPerTokenVector,
  memoryBytesPerTokenVector,
  plans,
}: IndexUse): string {
  const searches = Object.entries(plans)
    .filter(([, count]) => count > 0)
    .map(([plan, count]) => `${count} ${planMeanings[plan] ?? plan}`);
  return `${chunks} chunks; a token vector: ${formatNumber(diskBytesPerTokenVector)} bytes on disk, ${formatNumber(memoryBytesPerTokenVector)} in memory; searches: ${searches.join(', ') || 'none'}`;
}

const planMeanings: Readonly<Record<string, string>> = {
  exact: 'exact (few chunks, or no codes yet)',
  codes: 'by all codes (they cost less than lists)',
  lists: 'by lists (they cost less than all codes)',
  device: 'on the GPU of the engine (all chunks exactly)',
};

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
