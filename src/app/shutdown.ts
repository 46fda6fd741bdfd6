/**
 * The end of the process, once: the first SIGTERM, SIGINT or SIGHUP starts it, further ones change nothing
 * (they must not cut the drain short), a defect nobody caught ends it with exit code 1. The one importer of
 * close-with-grace.
 */
import closeWithGrace from 'close-with-grace';

export interface ShutdownOptions {
  /** How long requests in flight may take. */
  readonly drainMs: number;
  /** How long everything after them may take before the process is ended by force. */
  readonly closeMs: number;
  readonly onError: (error: unknown) => void;
}

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/** Faults of an instruction, which JavaScript cannot handle: it would be tried again for ever. SIGBUS is the engine's. */
const faults = ['SIGILL', 'SIGTRAP', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const;

export function onShutdown(options: ShutdownOptions, close: () => Promise<void>): void {
  const grace = closeWithGrace(
    // The library exits at a second signal, so it does not see those that mean "drain".
    { delay: options.drainMs + options.closeMs, skip: [...signals, ...faults], logger: false },
    async ({ err }) => {
      if (err !== undefined) options.onError(err);
      await close();
    },
  );
  let closing = false;
  for (const signal of signals) {
    process.on(signal, () => {
      if (closing) return;
      closing = true;
      grace.close();
    });
  }
}
