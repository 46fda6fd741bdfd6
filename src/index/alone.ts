import type { Asker } from './contract.ts';

/** Who asks an index that nobody else uses. */
export const alone: Asker = { signal: new AbortController().signal, inTurn: (task) => task() };
