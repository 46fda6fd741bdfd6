/** Lowers the priority of this thread, and on some systems of its process. */
import { getPriority, setPriority } from 'node:os';

/** A priority that is already as low stays, because only root may raise it. */
export function lowerPriority(niceness: number): void {
  if (getPriority() < niceness) setPriority(niceness);
}
