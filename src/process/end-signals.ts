/**
 * Catches signals that ask the process to end, from its first moment. A signal must also end a program that is still loading.
 * And the kernel delivers signals to process 1 of a container only once it handles them. So an entry calls this before it
 * loads the rest, and this file imports nothing.
 */

/** The first such signal aborts it; further ones change nothing. */
export function catchEndSignals(): AbortSignal {
  const asked = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => asked.abort(name));
  return asked.signal;
}

/** Calls `end` once: at the first signal, or at once if it has come. */
export function onceAsked(asked: AbortSignal, end: () => void): void {
  if (asked.aborted) end();
  else asked.addEventListener('abort', end, { once: true });
}

/** The result of `work`. Rejects as soon as the process is asked to end. */
export async function unlessAsked<T>(asked: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(new Error(`asked to end by ${String(asked.reason)}`));
  onceAsked(asked, stop);
  try {
    return await Promise.race([work, promise]);
  } finally {
    asked.removeEventListener('abort', stop);
  }
}
