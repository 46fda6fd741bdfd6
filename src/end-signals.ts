/**
 * Signals that ask the process to end, caught from its first moment. The kernel keeps signals from process 1 of a container
 * until it catches them, and one that comes while the program is still read must end it all the same. So an entry calls
 * this before it loads the rest, and this imports nothing.
 */

/** Aborted by the first such signal; further ones change nothing. */
export function catchEndSignals(): AbortSignal {
  const asked = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => asked.abort(name));
  return asked.signal;
}

/** Calls `end` once, at the first of the signals or at once where it has come. */
export function onceAsked(asked: AbortSignal, end: () => void): void {
  if (asked.aborted) end();
  else asked.addEventListener('abort', end, { once: true });
}

/** What `work` comes to; rejects as soon as the process is asked to end. */
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
