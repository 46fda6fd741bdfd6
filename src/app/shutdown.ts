/**
 * Ends the process once. The first SIGTERM, SIGINT or SIGHUP starts the end. Further ones change nothing, so that they do not
 * cut the drain short. A defect that nothing caught ends the process with exit code 1.
 */

import { onceAsked } from '../process/end-signals.ts';

export interface ShutdownOptions {
  readonly asked: AbortSignal;
  readonly drainMs: number;
  /** How long the rest may take before the process ends by force. */
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
