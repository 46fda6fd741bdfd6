/** Waits until a service has finished its work in the background. */
import { setTimeout as elapse } from 'node:timers/promises';
import { processSeconds } from './process-counters.ts';

const intervalMs = 3000;
/** Work that goes on for longer is measured along with the rest. */
const waitMsMax = 240_000;
/** Share of one core that timers and metrics may take. */
const restShare = 0.1;

/**
 * Resolves after the first three seconds in which the process used at most a tenth of a core, or after four minutes. For a service
 * elsewhere it resolves at once.
 */
export async function whenAtRest(processId: number | undefined, signal?: AbortSignal): Promise<void> {
  if (processId === undefined) return;
  for (const startedAt = performance.now(); performance.now() - startedAt < waitMsMax;) {
    const before = processSeconds(processId);
    await elapse(intervalMs, undefined, { signal });
    if (processSeconds(processId) - before <= (restShare * intervalMs) / 1000) return;
  }
}
