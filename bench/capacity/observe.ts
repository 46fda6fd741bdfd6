/**
 * What a step did to the machine: counters of the service's own metrics and of its processes, read before
 * and after.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { processCounters, statFields } from '../process-counters.ts';

export interface Observation {
  readonly atMs: number;
  /** Metric line (name and labels) -> value. */
  readonly metrics: ReadonlyMap<string, number>;
  /** CPU seconds and bytes written to disk of each process of the service. */
  readonly processes: readonly {
    readonly role: 'api' | 'encoder';
    readonly cpuSeconds: number;
    readonly writtenBytes: number;
  }[];
  /** 0..1, absent without a GPU. */
  readonly gpuUtilisation: number | undefined;
}

export interface StepResources {
  /** Mean milliseconds of each stage of a search, upsert or score, by `route stage`. */
  readonly stagesMs: Readonly<Record<string, number>>;
  /** Cores in use (1 = one core busy all the time). */
  readonly apiCores: number;
  readonly encoderCores: number;
  /** 99th percentile of the api's event-loop delay at the end of the step, milliseconds. */
  readonly eventLoopDelayP99Ms: number | undefined;
  readonly diskBytesPerSecond: number;
  readonly gpuUtilisation: number | undefined;
}

export async function observe(
  metricsUrl: string | undefined,
  apiProcessId: number | undefined,
): Promise<Observation> {
  const metrics =
    metricsUrl === undefined
      ? new Map<string, number>()
      : parseMetrics(await (await fetch(metricsUrl)).text());
  return {
    atMs: performance.now(),
    metrics,
    processes: apiProcessId === undefined ? [] : processTree(apiProcessId),
    gpuUtilisation: gpu(),
  };
}

export function resourcesBetween(before: Observation, after: Observation): StepResources {
  const seconds = (after.atMs - before.atMs) / 1000;
  const delta = (name: string): number => (after.metrics.get(name) ?? 0) - (before.metrics.get(name) ?? 0);
  const cores = (role: 'api' | 'encoder'): number => (cpu(after, role) - cpu(before, role)) / seconds;
  const stagesMs: Record<string, number> = {};
  for (const name of after.metrics.keys()) {
    const match = /^maxsimd_http_request_stage_seconds_sum\{(.*)\}$/.exec(name);
    if (match === null) continue;
    const labels = match[1] ?? '';
    const count = delta(`maxsimd_http_request_stage_seconds_count{${labels}}`);
    if (count <= 0) continue;
    stagesMs[`${label(labels, 'route')} ${label(labels, 'stage')}`] = (delta(name) / count) * 1000;
  }
  const loopDelay = after.metrics.get('maxsimd_nodejs_eventloop_lag_p99_seconds');
  return {
    stagesMs,
    apiCores: cores('api'),
    encoderCores: cores('encoder'),
    eventLoopDelayP99Ms: loopDelay === undefined ? undefined : loopDelay * 1000,
    diskBytesPerSecond: (written(after) - written(before)) / seconds,
    gpuUtilisation: after.gpuUtilisation,
  };
}

function cpu(observation: Observation, role: 'api' | 'encoder'): number {
  return observation.processes
    .filter((process) => process.role === role)
    .reduce((sum, process) => sum + process.cpuSeconds, 0);
}

function written(observation: Observation): number {
  return observation.processes.reduce((sum, process) => sum + process.writtenBytes, 0);
}

function label(labels: string, name: string): string {
  return new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
}

function parseMetrics(text: string): Map<string, number> {
  const metrics = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const space = line.lastIndexOf(' ');
    metrics.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return metrics;
}

/** The api process and its children, from /proc; empty where there is none. */
function processTree(apiProcessId: number): Observation['processes'] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((id) => parentOf(id) === apiProcessId);
  return [
    { role: 'api' as const, ...processCounters(apiProcessId) },
    ...children.map((id) => ({ role: 'encoder' as const, ...processCounters(id) })),
  ];
}

function parentOf(id: number): number {
  return Number(statFields(id)[1] ?? -1);
}

function gpu(): number | undefined {
  try {
    const text = execFileSync(
      'nvidia-smi',
      ['--query-gpu=utilization.gpu', '--format=csv,noheader,nounits'],
      {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    return Math.max(...text.trim().split('\n').map(Number)) / 100;
  } catch {
    return undefined;
  }
}
