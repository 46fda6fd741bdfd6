/** The report of `bench -- cost`: figures of each phase and side, their ratios, and what they mean on paper for a larger host. */
import type { Environment } from '../lib/environment.ts';
import { maximum, median, pairedRatios, percentiles, quantile, sum } from '../lib/statistics.ts';
import { markdownTable } from '../lib/table.ts';
import type { Sample } from './load.ts';
import { formatNumber } from './report.ts';
import type { Mix } from './schedule.ts';

/** A part of a round. Null = as many requests are kept open as asked for. */
export interface Phase {
  readonly name: string;
  readonly mix: Mix;
  readonly rate: number | null;
  readonly besideImport: boolean;
}

export interface Imported {
  /** Documents that were stored. */
  readonly perSecond: number;
  /** Documents of failed requests. */
  readonly failed: number;
}

/** A phase of one round of one side. */
export interface Measured {
  readonly samples: readonly Sample[];
  readonly sendLagsMs: readonly number[];
  readonly senderCores: readonly number[];
  readonly seconds: number;
  /** CPU seconds of `api` and `encoders`, and of their threads (`api: MainThread`). */
  readonly processor: Readonly<Record<string, number>>;
  /** The import beside it. */
  readonly imported: Imported | undefined;
}

type Processor = Readonly<Record<string, number>>;

export interface PhaseReport {
  readonly phase: string;
  readonly beside_import: boolean;
  readonly requests: number;
  /** Requests without a 200, and their statuses; 0 = no answer. */
  readonly failed: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly answered_per_second: number;
  /** From when a request was due. */
  readonly latency_ms: Readonly<Record<'p50' | 'p99', number>>;
  /** Documents of the import beside it, the median of the rounds, and those of its failed requests. */
  readonly imported_per_second: number | null;
  readonly import_failed: number;
  /**
   * Milliseconds of processor time an answered request, by process and thread. They contain the time of failed requests and of an
   * import beside them.
   */
  readonly processor_ms: Processor;
  readonly send_lag_ms_p99: number;
  readonly busiest_sender_cores: number;
  /** Figures of each round, for ratios. */
  readonly rounds: readonly Processor[];
}

export interface CostReport {
  readonly environment: Environment;
  readonly settings: {
    readonly documents: number;
    readonly texts: string;
    readonly model: string;
    readonly rounds: number;
    readonly seconds: number;
    readonly senders: number;
  };
  /** The side that ratios divide by. */
  readonly base: string;
  readonly sides: readonly { readonly name: string; readonly phases: readonly PhaseReport[] }[];
}

const listed = ['api', 'api without engine', 'encoders'] as const;
const paperCores = 16;
/** Threads that use less are not listed. */
const listedMsMin = 0.01;
const busySender = 0.85;

export function sideReport({
  name,
  measured,
}: {
  readonly name: string;
  readonly measured: ReadonlyMap<Phase, readonly Measured[]>;
}): CostReport['sides'][number] {
  return { name, phases: [...measured].map(([phase, rounds]) => phaseReport(phase, rounds)) };
}

function phaseReport({ name, besideImport }: Phase, rounds: readonly Measured[]): PhaseReport {
  const samples = rounds.flatMap((round) => round.samples);
  const failures: Record<string, number> = {};
  for (const { status } of samples) if (status !== 200) failures[status] = (failures[status] ?? 0) + 1;
  const failed = sum(Object.values(failures));
  const imported = rounds.flatMap((round) => round.imported ?? []);
  const names = new Set(rounds.flatMap(({ processor }) => Object.keys(processor)));
  const msOf = (process: string): number =>
    (1000 * sum(rounds.map(({ processor }) => processor[process] ?? 0))) / (samples.length - failed);
  return {
    phase: name,
    beside_import: besideImport,
    requests: samples.length,
    failed,
    failures,
    answered_per_second: (samples.length - failed) / sum(rounds.map(({ seconds }) => seconds)),
    latency_ms: percentiles(latenciesOf(samples), 50, 99),
    imported_per_second: imported.length === 0 ? null : median(imported.map(({ perSecond }) => perSecond)),
    import_failed: sum(imported.map(({ failed: documents }) => documents)),
    processor_ms: Object.fromEntries([...names].map((process) => [process, msOf(process)])),
    send_lag_ms_p99: quantile(
      rounds.flatMap(({ sendLagsMs }) => sendLagsMs),
      0.99,
    ),
    busiest_sender_cores: maximum(rounds.flatMap(({ senderCores }) => senderCores)),
    rounds: rounds.map((round) => figuresOf(round)),
  };
}

function figuresOf({ samples, processor, seconds, imported }: Measured): Processor {
  const latencies = latenciesOf(samples);
  const perRequest = 1000 / latencies.length;
  return {
    ...Object.fromEntries(listed.map((process) => [process, (processor[process] ?? 0) * perRequest])),
    ...percentiles(latencies, 50, 99),
    'requests/s': latencies.length / seconds,
    ...(imported === undefined ? {} : { 'imported/s': imported.perSecond }),
  };
}

function latenciesOf(samples: readonly Sample[]): readonly number[] {
  return samples.filter(({ status }) => status === 200).map(({ latencyMs }) => latencyMs);
}

export function render(report: CostReport): string {
  const { settings, sides, base } = report;
  const phases = sides[0]!.phases.map(({ phase }) => phase);
  const rows = phases.flatMap((_, at) => sides.map(({ name, phases: of }) => [name, of[at]!] as const));
  return [
    `${settings.model}, ${settings.documents} documents of ${settings.texts}, ${settings.rounds} rounds of ${settings.seconds} s; processor time in ms an answered request`,
    '',
    ...markdownTable(
      ['phase', 'side', 'p50 ms', 'p99 ms', 'failed', 'late p99 ms', 'requests/s', 'imported/s', ...listed],
      rows.map(([side, of]) => [
        of.phase,
        side,
        of.latency_ms.p50.toFixed(2),
        of.latency_ms.p99.toFixed(2),
        `${of.failed} of ${of.requests}`,
        formatNumber(of.send_lag_ms_p99),
        formatNumber(of.answered_per_second),
        `${formatNumber(of.imported_per_second ?? undefined)}${of.import_failed > 0 ? ` (${of.import_failed} failed)` : ''}`,
        ...listed.map((process) => of.processor_ms[process]!.toFixed(3)),
      ]),
    ),
    '',
    ...threadTable(report, phases),
    '',
    ...sides.filter(({ name }) => name !== base).flatMap(({ name }) => ratioLines(report, name)),
    ...sides.map(paperLine),
    ...rows.flatMap(([side, of]) => senderLine(side, of)),
    '',
  ].join('\n');
}

function threadTable({ sides }: CostReport, phases: readonly string[]): readonly string[] {
  const alone = phases.flatMap((phase, at) => (sides[0]!.phases[at]!.beside_import ? [] : [{ phase, at }]));
  const columns = alone.flatMap(({ phase, at }) =>
    sides.map(({ name, phases: of }) => ({ head: `${phase}, ${name}`, ms: of[at]!.processor_ms })),
  );
  const threads = [...new Set(columns.flatMap(({ ms }) => Object.keys(ms)))]
    .filter((thread) => columns.some(({ ms }) => (ms[thread] ?? 0) >= listedMsMin))
    .toSorted();
  return markdownTable(
    ['ms an answered request', ...columns.map(({ head }) => head)],
    threads.map((thread) => [thread, ...columns.map(({ ms }) => (ms[thread] ?? 0).toFixed(3))]),
  );
}

/** Medians of the ratios of paired rounds. */
function ratioLines({ sides, base }: CostReport, name: string): readonly string[] {
  const of = (side: string) => sides.find((each) => each.name === side)!.phases;
  return of(name).map(({ phase, rounds }, at) => {
    const others = of(base)[at]!.rounds;
    const ratios = Object.keys(rounds[0]!).map((figure) => {
      const [own, other] = [rounds, others].map((each) => each.map((round) => round[figure]!));
      return `${figure} ${median(pairedRatios(own!, other!)).toFixed(2)}`;
    });
    return `${phase}, ${name} / ${base}: ${ratios.join(', ')}`;
  });
}

/** The last phase without an import has the most requests a second. */
function paperLine({ name, phases }: CostReport['sides'][number]): string {
  const { phase, processor_ms: ms } = phases.findLast(({ beside_import: beside }) => !beside)!;
  const all = (paperCores * 1000) / (ms['api']! + ms['encoders']!);
  const [thread, busiest] = Object.entries(ms)
    .filter(([key]) => key.includes(': '))
    .toSorted((a, b) => b[1] - a[1])[0]!;
  return `on paper, ${name}, ${phase}: ${paperCores} cores have processor time for ${formatNumber(all)} requests/s; the busiest thread (${thread}) for ${formatNumber(1000 / busiest)}`;
}

function senderLine(side: string, of: PhaseReport): readonly string[] {
  if (of.busiest_sender_cores < busySender) return [];
  return [
    `${of.phase}, ${side}: a sender used ${of.busiest_sender_cores.toFixed(2)} cores, so it may be the bound (--senders)`,
  ];
}
