/** The admission of another node, which shares the catalog of a stage and its clock, and has caches of its own. */
import { Admission } from '../../../src/service/admission.ts';
import { InFlight } from '../../../src/service/in-flight.ts';
import { MemoryLimiter } from '../../../src/service/limits/memory-limiter.ts';
import { UsageRecorder } from '../../../src/service/usage/usage-recorder.ts';
import type { ServiceStage } from './service-stage.ts';

export async function admissionOfAnotherNode({ catalog, clock, errors }: ServiceStage): Promise<Admission> {
  const nowMs = (): number => clock.ms;
  const limiter = await MemoryLimiter.restore(catalog, nowMs());
  return new Admission({
    catalog,
    keyPepper: catalog.keyPepper(),
    limiter,
    usage: new UsageRecorder({ catalog, limiter, nowMs }),
    inFlight: new InFlight(),
    nowMs,
    rateNowMs: nowMs,
    onUncounted: (error) => errors.push(error),
    onUnnoted: (error) => errors.push(error),
  });
}
