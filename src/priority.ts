/** The priority of this thread, and on some systems of its process. */
import { getPriority, setPriority } from 'node:os';

/** Lowers it to a niceness, unless it is as low already: only root may raise one. */
export function lowerPriority(niceness: number): void {
  if (getPriority() < niceness) setPriority(niceness);
}
