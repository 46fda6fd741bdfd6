/**
 * The end of the process, once: the first SIGTERM, SIGINT or SIGHUP starts it, further ones change nothing
 * (they must not cut the drain short), a defect nobody caught ends it with exit code 1.
 */

import { onceAsked } from '../end-signals.ts';

export interface ShutdownOptions {
  /** Aborted when the process is asked to end. */
  readonly asked: AbortSignal;
  /** How long requests in flight may take. */
  readonly drainMs: number;
  /** How long everything after them may take before the process is ended by force. */
  readonly closeMs: number;
  readonly onError: (error: unknown) => void;
}

export function onShutdown(options: ShutdownOptions, close: () => Promise<void>): void {
  let ending = false;
  let exitCode = 0;
  const fail = (error: unknown): void => {
    exitCode = 1;
    options.onError(error);
  };
  const end = (): void => {
    if (ending) return;
    ending = true;
    setTimeout(() => process.exit(1), options.drainMs + options.closeMs);
    void close()
      .catch(fail)
      .finally(() => process.exit(exitCode));
  };
  onceAsked(options.asked, end);
  for (const defect of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(defect, (error: unknown) => {
      fail(error);
      end();
    });
  }
}
