/** The shape of a capacity report, made of its steps. */
import { cpus } from 'node:os';
import { describeEnvironment, type Environment } from '../lib/environment.ts';
import type { StepResources } from './observe.ts';
import type { Mix, Operation } from './schedule.ts';
import { verdict, type Verdict } from './verdict.ts';

export interface StepReport {
  readonly rate_per_second: number;
  readonly seconds: number;
  readonly requests: number;
  readonly failed: number;
  /** Requests without a 200 by status; 0 = no answer. */
  readonly failures: Readonly<Record<string, number>>;
  readonly answered_per_second: number;
  /** Latency of the requests answered with 200, from the moment a request was due; null when there were none. */
  readonly latency_ms: Readonly<Record<'p50' | 'p90' | 'p99' | 'max', number>> | null;
  readonly by_operation: Readonly<
    Partial<Record<Operation, { readonly requests: number; readonly p50: number; readonly p99: number }>>
  >;
  readonly met_target: boolean;
  /** How late the senders themselves sent. */
  readonly send_lag_ms_p99: number;
  readonly resources: StepResources;
}

export interface CapacitySettings {
  readonly mix: Mix;
  readonly p99_ms: number;
  readonly step_seconds: number;
  readonly documents: number;
  readonly texts: string;
  readonly model: string;
  readonly services: number;
  /** Processes that sent the requests. */
  readonly senders: number;
}

export interface CapacityReport {
  readonly environment: Environment;
  readonly settings: CapacitySettings;
  /** From the start of the first service until all documents were stored. */
  readonly stored_seconds: number;
  readonly rows: readonly StepReport[];
  /** Highest rate that met the target; null when none did. */
  readonly capacity_per_second: number | null;
  readonly verdict: Verdict;
  /** True when the run was cut short: the rows are those measured until then. */
  readonly interrupted: boolean;
  readonly ratios: Readonly<Record<string, number | null>>;
}

export function reportOf(run: {
  readonly command: string;
  readonly settings: CapacitySettings;
  readonly stored_seconds: number;
  readonly rows: readonly StepReport[];
  readonly interrupted: boolean;
}): CapacityReport {
  const rows = run.rows.toSorted((a, b) => a.rate_per_second - b.rate_per_second);
  const [lowest] = rows;
  const failingAt = rows.findIndex((row) => !row.met_target);
  const failing = rows[failingAt];
  const best = failingAt === -1 ? rows.at(-1) : rows[failingAt - 1];
  return {
    environment: describeEnvironment(run.command, 'auto', [cpus().length]),
    settings: run.settings,
    stored_seconds: run.stored_seconds,
    rows,
    capacity_per_second: best?.rate_per_second ?? null,
    verdict:
      lowest === undefined
        ? { resource: 'unknown', reason: 'no step has ended' }
        : verdict({
            lowest: lowest.met_target ? lowest.resources : undefined,
            failing: failing?.resources,
            failedShare: failing === undefined ? 0 : failing.failed / failing.requests,
            cores: cpus().length,
            sendLagMsP99: failing?.send_lag_ms_p99 ?? 0,
            targetP99Ms: run.settings.p99_ms,
          }),
    interrupted: run.interrupted,
    ratios: {},
  };
}

/** Three significant digits or so. */
export function formatNumber(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '-';
  return value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(2);
}
