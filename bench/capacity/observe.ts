/**
 * The load of a step on the machine, from the service's metrics and the counters of its processes, read before and after.
 */
import {
  childProcesses,
  machineSeconds,
  processSeconds,
  threadsOf,
} from '../lib/service/process-counters.ts';
import { scrape } from '../lib/service/metrics.ts';
import { maximum, mean, sum } from '../lib/statistics.ts';
import type { GpuUse } from './gpu-watch.ts';

export interface Observation {
  readonly atMs: number;
  /** Metric line (name and labels) -> value. */
  readonly metrics: ReadonlyMap<string, number>;
  /** CPU seconds of the service's processes; absent for a service elsewhere. */
  readonly counters: Counters | undefined;
}

export interface Counters {
  /** Threads of the api process with an event loop, by their id. */
  readonly eventLoopSeconds: ReadonlyMap<number, number>;
  readonly engineSeconds: number;
  /** All threads of the api process. */
  readonly apiSeconds: number;
  readonly encoderSeconds: number;
  /** The main thread of each encoder process, by its id. */
  readonly encoderLoopSeconds: ReadonlyMap<number, number>;
  readonly machineSeconds: number;
}

/** The load of the service alone. */
export interface ServiceResources {
  /** Mean milliseconds of each stage of a search, upsert or score, by `route stage`. */
  readonly stagesMs: Readonly<Record<string, number>>;
  /** Cores in use (1 = one core busy all the time); undefined for a service elsewhere. Of event loops, the busiest counts. */
  readonly eventLoopCores: number | undefined;
  readonly engineCores: number | undefined;
  readonly apiCores: number | undefined;
  readonly encoderCores: number | undefined;
  /** The event loop of the busiest encoder process. */
  readonly encoderLoopCores: number | undefined;
  /** Cores in use by everything on the machine, with those that its host took away. */
  readonly machineCores: number | undefined;
  readonly gpu: GpuUse | undefined;
  /** The contents of open indexes, and how they were searched; undefined without the service's metrics. */
  readonly indexes?: IndexUse | undefined;
}

export interface StepResources extends ServiceResources {
  /** Cores used by all senders, and by the busiest of them. */
  readonly generatorCores: number;
  readonly busiestSenderCores: number;
}

export interface IndexUse {
  readonly chunks: number;
  readonly diskBytesPerTokenVector: number;
  /** The engine keeps directories, codebooks and codes. Rows are left to the page cache. */
  readonly memoryBytesPerTokenVector: number;
  /** Searches of the step by how candidates were chosen. */
  readonly plans: Readonly<Record<string, number>>;
}

const engineThread = 'maxsimd-engine';
/** Node's names of threads that run JavaScript. */
const loopThread = /^(MainThread|WorkerThread)$/;

export async function observe(
  metricsUrl: string | undefined,
  apiProcessId: number | undefined,
): Promise<Observation> {
  const metrics = metricsUrl === undefined ? new Map<string, number>() : await scrape(metricsUrl);
  return {
    atMs: performance.now(),
    metrics,
    counters: apiProcessId === undefined ? undefined : countersOf(apiProcessId),
  };
}

export function resourcesBetween(
  before: Observation,
  after: Observation,
  gpu: GpuUse | undefined,
): ServiceResources {
  const seconds = (after.atMs - before.atMs) / 1000;
  const delta = (name: string): number => (after.metrics.get(name) ?? 0) - (before.metrics.get(name) ?? 0);
  const perSecond = (pick: (counters: Counters) => number): number | undefined =>
    before.counters === undefined || after.counters === undefined
      ? undefined
      : (pick(after.counters) - pick(before.counters)) / seconds;
  const cpuMetric = 'maxsimd_process_cpu_seconds_total';
  return {
    stagesMs: stagesBetween(after, delta),
    eventLoopCores: busiestLoop(before, after, 'eventLoopSeconds'),
    engineCores: perSecond(({ engineSeconds }) => engineSeconds),
    apiCores:
      perSecond(({ apiSeconds }) => apiSeconds) ??
      (after.metrics.has(cpuMetric) ? delta(cpuMetric) / seconds : undefined),
    encoderCores: perSecond(({ encoderSeconds }) => encoderSeconds),
    encoderLoopCores: busiestLoop(before, after, 'encoderLoopSeconds'),
    machineCores: perSecond((counters) => counters.machineSeconds),
    gpu,
    indexes: indexesOf(after, delta),
  };
}

/** Joins several services on one machine: their busiest event loop, the sum of other threads, their mean request, and the indexes of the first. */
export function together(services: readonly ServiceResources[]): ServiceResources {
  const [first, ...others] = services;
  if (first === undefined) throw new Error('this is a bug: no service');
  if (others.length === 0) return first;
  const of = (
    pick: (resources: ServiceResources) => number | undefined,
    combine: (values: readonly number[]) => number,
  ): number | undefined => {
    const values = services.map(pick).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : combine(values);
  };
  const stages = new Set(services.flatMap(({ stagesMs }) => Object.keys(stagesMs)));
  return {
    ...first,
    stagesMs: Object.fromEntries(
      [...stages].map((stage) => [stage, of(({ stagesMs }) => stagesMs[stage], mean)!]),
    ),
    eventLoopCores: of(({ eventLoopCores }) => eventLoopCores, maximum),
    engineCores: of(({ engineCores }) => engineCores, sum),
    apiCores: of(({ apiCores }) => apiCores, sum),
    encoderCores: of(({ encoderCores }) => encoderCores, sum),
    encoderLoopCores: of(({ encoderLoopCores }) => encoderLoopCores, maximum),
  };
}

/** Counts the event loops that ran during all of the step. */
function busiestLoop(
  before: Observation,
  after: Observation,
  loops: 'eventLoopSeconds' | 'encoderLoopSeconds',
): number | undefined {
  const seconds = (after.atMs - before.atMs) / 1000;
  const cores = [...(after.counters?.[loops] ?? [])].flatMap(([id, total]) => {
    const earlier = before.counters?.[loops].get(id);
    return earlier === undefined ? [] : [(total - earlier) / seconds];
  });
  return cores.length === 0 ? undefined : maximum(cores);
}

function indexesOf({ metrics }: Observation, delta: (name: string) => number): IndexUse | undefined {
  const tokenVectors = metrics.get('maxsimd_store_token_vectors') ?? 0;
  if (tokenVectors === 0) return undefined;
  const total = (...names: readonly string[]): number =>
    sum(names.map((name) => metrics.get(`maxsimd_${name}`) ?? 0));
  const plans = ['exact', 'codes', 'lists', 'graph', 'device'].map((plan) => [
    plan,
    delta(`maxsimd_engine_searches_total{plan="${plan}"}`),
  ]);
  return {
    chunks: total('store_chunks'),
    diskBytesPerTokenVector: total('store_disk_bytes', 'store_derived_bytes') / tokenVectors,
    memoryBytesPerTokenVector:
      total('engine_memory_bytes{kind="taken"}', 'engine_memory_bytes{kind="codes"}') / tokenVectors,
    plans: Object.fromEntries(plans) as Record<string, number>,
  };
}

function stagesBetween(after: Observation, delta: (name: string) => number): Record<string, number> {
  const stagesMs: Record<string, number> = {};
  for (const name of after.metrics.keys()) {
    const match = /^maxsimd_http_request_stage_seconds_sum\{(.*)\}$/.exec(name);
    if (match === null) continue;
    const labels = match[1] ?? '';
    const count = delta(`maxsimd_http_request_stage_seconds_count{${labels}}`);
    if (count <= 0) continue;
    stagesMs[`${label(labels, 'route')} ${label(labels, 'stage')}`] = (delta(name) / count) * 1000;
  }
  return stagesMs;
}

function label(labels: string, name: string): string {
  return new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
}

/** The api process, and its children (the encoders), from /proc. */
function countersOf(apiProcessId: number): Counters {
  const threads = threadsOf(apiProcessId);
  const encoderIds = childProcesses(apiProcessId);
  return {
    eventLoopSeconds: new Map(
      threads.filter(({ name }) => loopThread.test(name)).map(({ id, seconds }) => [id, seconds]),
    ),
    engineSeconds: sum(threads.filter(({ name }) => name === engineThread).map(({ seconds }) => seconds)),
    apiSeconds: processSeconds(apiProcessId),
    encoderSeconds: sum(encoderIds.map(processSeconds)),
    encoderLoopSeconds: new Map(encoderIds.map((id) => [id, threadsOf(id)[0]?.seconds ?? 0])),
    machineSeconds: machineSeconds(),
  };
}
