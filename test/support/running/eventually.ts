/** Polls until a condition holds, within a bound of time. It serves states that another process reaches by itself. */

export interface EventuallyOptions {
  /** The bound is shorter than this only if the service promises that. A long bound costs no time if all is well. */
  readonly withinMs?: number;
  readonly everyMs?: number;
}

/** Resolves with the first value of `observe` that is neither undefined nor false. */
export async function eventually<Value>(
  observe: () => Promise<Value | undefined | false> | Value | undefined | false,
  { withinMs = 300_000, everyMs = 10 }: EventuallyOptions = {},
): Promise<Value> {
  const end = performance.now() + withinMs;
  for (;;) {
    const value = await observe();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${observe.toString()}`);
    await pause(everyMs);
  }
}

export async function pause(milliseconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, milliseconds);
  await promise;
}

/** Rejects if `promise` has not settled after `withinMs`. It bounds waits that must never hang. */
export async function within<Value>(withinMs: number, what: string, promise: Promise<Value>): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`hangs for more than ${withinMs} ms: ${what}`)),
    withinMs,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
