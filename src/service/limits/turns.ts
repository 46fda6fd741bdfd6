/** Lets other requests have their turn during long work on the event loop. */
import { setImmediate } from 'node:timers/promises';

/** The time between two turns. */
const turnMs = 2;

/** Called between steps of the work. Waits for the others when the turn is over. */
export function takingTurns(): () => Promise<void> {
  let turnAt = performance.now() + turnMs;
  return async () => {
    if (performance.now() < turnAt) return;
    await setImmediate();
    turnAt = performance.now() + turnMs;
  };
}
