/**
 * Names the resource that gave out: the one that is used up at the first rate over the target, told by
 * utilisation where it shows and otherwise by the stage whose time grew most since the lowest rate.
 */
import type { StepResources } from './observe.ts';

export type Resource = 'encoder' | 'engine' | 'event loop' | 'disk' | 'load generator' | 'none';

export interface VerdictInput {
  readonly lowest: StepResources;
  readonly failing: StepResources | undefined;
  readonly cores: number;
  /** How late the generator itself sent, at worst, in the failing step. */
  readonly sendLagMsMax: number;
  readonly targetP99Ms: number;
}

export interface Verdict {
  readonly resource: Resource;
  readonly reason: string;
}

/** Stage names of the service -> the resource that the stage waits for or uses. */
const resourceOfStage: Readonly<Record<string, Resource>> = {
  encode: 'encoder',
  encoder_queue: 'encoder',
  encoder_run: 'encoder',
  encoder_tokenize: 'encoder',
  count: 'encoder',
  score: 'encoder',
  engine: 'engine',
  append: 'disk',
  commit: 'disk',
  usage: 'disk',
};

const busyShare = 0.85;

export function verdict(input: VerdictInput): Verdict {
  const { failing, lowest } = input;
  if (failing === undefined) return { resource: 'none', reason: 'every rate that was tried met the target' };
  if (input.sendLagMsMax > input.targetP99Ms / 2) {
    return {
      resource: 'load generator',
      reason: `requests were sent up to ${input.sendLagMsMax.toFixed(0)} ms late`,
    };
  }
  if (failing.apiCores >= busyShare && failing.apiCores > failing.encoderCores) {
    return { resource: 'event loop', reason: `the api process used ${failing.apiCores.toFixed(2)} cores` };
  }
  const growth = new Map<Resource, number>();
  for (const [name, ms] of Object.entries(failing.stagesMs)) {
    const resource = resourceOfStage[name.slice(name.lastIndexOf(' ') + 1)];
    if (resource === undefined) continue;
    growth.set(resource, Math.max(growth.get(resource) ?? 0, ms - (lowest.stagesMs[name] ?? 0)));
  }
  const [resource, ms] = [...growth].toSorted((a, b) => b[1] - a[1])[0] ?? ['none', 0];
  const busy =
    resource === 'encoder'
      ? `; encoders used ${failing.encoderCores.toFixed(2)} of ${input.cores} cores`
      : '';
  return { resource, reason: `its stage took ${ms.toFixed(1)} ms longer than at the lowest rate${busy}` };
}
