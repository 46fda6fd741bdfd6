/**
 * Names the resource that gave out at the first rate that missed the target. The load generator is recognised by its lateness,
 * and an event loop by its busy core. Any other resource is recognised by its stages: their time grew most since the lowest
 * rate, per request and in all operations of the mix together.
 */
import type { StepResources } from './observe.ts';

export type Resource =
  | 'encoder'
  | 'engine'
  | 'event loop'
  | 'processor'
  | 'disk'
  | 'load generator'
  | 'none'
  | 'unknown';

export interface VerdictInput {
  /** The lowest rate, if it met the target. It shows the time of a request when nothing is short. */
  readonly lowest: StepResources | undefined;
  readonly failing: StepResources | undefined;
  /** Share of requests of the failing step without a 200. */
  readonly failedShare: number;
  readonly cores: number;
  /** How late the generator itself sent in the failing step. */
  readonly sendLagMsP99: number;
  readonly targetP99Ms: number;
}

export interface Verdict {
  readonly resource: Resource;
  readonly reason: string;
}

/** Stages that follow one another in a request -> the resource they wait for. Parts of these stages are left out. */
const resourceOfStage: Readonly<Record<string, Resource>> = {
  // The way to the encoder and back. The encoder's own time within it is in `partsOfEncode`.
  encode: 'event loop',
  count: 'encoder',
  score: 'encoder',
  engine: 'engine',
  append: 'disk',
  commit: 'disk',
  usage: 'disk',
  admission: 'event loop',
  body: 'event loop',
  answer: 'event loop',
  resolve: 'event loop',
};

/** Stages of the encoder, within `encode`. */
const partsOfEncode = /^encoder_(tokenize|queue|run)$/;

const busyShare = 0.85;
/** Cores that something else may use without being named. */
const othersCoresMax = 0.25;
/** When no stage grew by more than this, something outside the stages was slow. */
const growthMsMin = 1;

export function verdict(input: VerdictInput): Verdict {
  const { failing, lowest } = input;
  if (failing === undefined) return { resource: 'none', reason: 'every rate that was tried met the target' };
  if (isGeneratorShort(input, failing)) {
    return {
      resource: 'load generator',
      reason: `requests were sent ${input.sendLagMsP99.toFixed(0)} ms late at p99; the busiest sender used ${failing.busiestSenderCores.toFixed(2)} cores (--senders)`,
    };
  }
  if (loopsOf(failing).some(({ cores }) => cores >= busyShare)) {
    return { resource: 'event loop', reason: loopsText(failing) };
  }
  const [grown] = [...growthOf(lowest, failing)].toSorted((a, b) => b[1] - a[1]);
  if (grown === undefined || grown[1] < growthMsMin) {
    const what =
      input.failedShare > 0
        ? `${(input.failedShare * 100).toFixed(1)}% of the requests failed`
        : 'requests were slow';
    return { resource: 'unknown', reason: `${what}, and no stage took longer than it should` };
  }
  const [waitedFor, ms] = grown;
  const isProcessorShort =
    waitedFor === 'event loop' && (failing.machineCores ?? 0) >= busyShare * input.cores;
  const resource = isProcessorShort ? 'processor' : waitedFor;
  const took = isProcessorShort ? 'event loops waited for it' : 'its stages took';
  return {
    resource,
    reason: `${took} ${ms.toFixed(1)} ms${lowest === undefined ? ' already at the lowest rate' : ' longer than at the lowest rate'}${usageOf(resource, failing, input.cores)}`,
  };
}

/**
 * Whether the generator itself held up the load. It was late, and the service beside it had not taken the machine's cores.
 */
function isGeneratorShort(input: VerdictInput, failing: StepResources): boolean {
  if (input.sendLagMsP99 <= input.targetP99Ms / 2) return false;
  if (failing.busiestSenderCores >= busyShare || failing.machineCores === undefined) return true;
  return failing.machineCores < busyShare * input.cores;
}

/** Milliseconds that a request spends longer on each resource, by the operation where it grew most. */
function growthOf(lowest: StepResources | undefined, failing: StepResources): ReadonlyMap<Resource, number> {
  const byRoute = new Map<string, Map<Resource, number>>();
  for (const [name, ms] of Object.entries(failing.stagesMs)) {
    const [route = '', stage = ''] = name.split(' ');
    const grown = ms - (lowest?.stagesMs[name] ?? 0);
    const ofRoute = byRoute.get(route) ?? new Map<Resource, number>();
    byRoute.set(route, ofRoute);
    const add = (resource: Resource, growth: number): void => {
      ofRoute.set(resource, (ofRoute.get(resource) ?? 0) + growth);
    };
    const resource = resourceOfStage[stage];
    if (resource !== undefined) add(resource, grown);
    if (partsOfEncode.test(stage) && `${route} encode` in failing.stagesMs) {
      add('encoder', grown);
      add('event loop', -grown);
    }
  }
  const growth = new Map<Resource, number>();
  for (const [resource, ms] of [...byRoute.values()].flatMap((ofRoute) => [...ofRoute])) {
    growth.set(resource, Math.max(ms, growth.get(resource) ?? -Infinity));
  }
  return growth;
}

/** The known event loops. Each process has one, which uses one core at most. */
function loopsOf({ eventLoopCores, encoderLoopCores }: StepResources) {
  return [
    { name: "the api process's busiest thread", cores: eventLoopCores },
    { name: "the busiest encoder's", cores: encoderLoopCores },
  ].flatMap(({ name, cores }) => (cores === undefined ? [] : [{ name, cores }]));
}

function loopsText(resources: StepResources): string {
  return loopsOf(resources)
    .map(({ name, cores }) => `${name} was busy ${(cores * 100).toFixed(0)}% of the time`)
    .join(', ');
}

function usageOf(resource: Resource, failing: StepResources, cores: number): string {
  const used = {
    encoder: failing.encoderCores,
    engine: failing.engineCores,
    processor: failing.machineCores,
  }[resource as 'encoder' | 'engine' | 'processor'];
  const loops = loopsText(failing);
  const busy = resource === 'event loop' && loops !== '' ? `; ${loops}` : '';
  const gpu =
    resource === 'encoder' && failing.gpu !== undefined
      ? `; the GPU was busy ${(failing.gpu.utilisation * 100).toFixed(0)}%`
      : '';
  const own = (failing.apiCores ?? 0) + (failing.encoderCores ?? 0) + failing.generatorCores;
  const others = (failing.machineCores ?? 0) - own;
  const shared =
    others > othersCoresMax ? `; other programs and the host took ${others.toFixed(2)} cores meanwhile` : '';
  const inUse = `${used?.toFixed(2)} of ${cores} cores`;
  const usage = resource === 'processor' ? `; ${inUse} were in use` : `; it used ${inUse}`;
  return `${used === undefined ? '' : usage}${busy}${gpu}${shared}`;
}
