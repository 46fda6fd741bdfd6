/** Removes the folders and ends the processes of a benchmark, however it ends. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A folder of the benchmark's own, until it is disposed of. */
export function scratchFolder(name: string): Disposable & { readonly path: string } {
  const folder = mkdtempSync(path.join(tmpdir(), `maxsimd-${name}-`));
  const remove = (): void => {
    // When an ending process removes a file meanwhile, Node 24 stops there without an error.
    while (existsSync(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  const forget = endWithThisProcess(remove);
  return {
    path: folder,
    [Symbol.dispose]: () => {
      forget();
      remove();
    },
  };
}

/** They run when this process ends. */
const endings = new Set<() => void>();
const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;

/** Runs `end` when this process exits or gets a signal that ends it. The function that it returns cancels that. */
export function endWithThisProcess(end: () => void): () => void {
  if (endings.size === 0) {
    process.on('exit', endAll);
    for (const signal of signals) process.on(signal, exitBySignal);
  }
  endings.add(end);
  return () => {
    endings.delete(end);
    if (endings.size > 0) return;
    process.off('exit', endAll);
    for (const signal of signals) process.off(signal, exitBySignal);
  };
}

/** The last one runs first, so a process ends before its folder is removed. */
function endAll(): void {
  for (const end of [...endings].toReversed()) end();
}

/** A signal that nobody listens to ends a process without its `exit` event. Another listener decides by itself when to end. */
function exitBySignal(signal: NodeJS.Signals, number: number): void {
  if (process.listenerCount(signal) === 1) process.exit(128 + number);
}
