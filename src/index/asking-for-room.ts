/** Asks the engine again for what found no room in memory, each time after the service has made some. */
import { askAgain, type Repeats } from './ask-again.ts';
import { hasEngineCode } from './engine/engine-errors.ts';
import type { NativeIndex } from './engine/native.ts';

/** Makes room for an index of a tenant. Resolves to false when nothing may be closed for it. */
export type MakeRoom = (tenantId: string) => Promise<boolean>;

/** Nothing is left of one of these calls when it finds no room, so that it may be made again. */
const repeatable = ['openSegment', 'append', 'addValues', 'buildCodes'] as const;

/** Changes the index in place: it is an object of the addon, which a copy would not be. */
export function askForRoom(native: NativeIndex, repeats: Repeats, makeRoom: () => Promise<boolean>): void {
  const mend = async (error: unknown) =>
    hasEngineCode(error, 'no_memory') && (await makeRoom()) ? 'memory' : undefined;
  for (const name of repeatable) {
    const method = native[name].bind(native) as (...args: readonly unknown[]) => Promise<unknown>;
    Object.defineProperty(native, name, {
      configurable: true,
      value: (...args: readonly unknown[]) => askAgain(repeats, mend, () => method(...args)),
    });
  }
}
