/** Polls until a condition holds, within a bound of time. It serves states that another process reaches by itself. */

/** Milliseconds after which a wait counts as a hang, also on a machine that does much else. It costs no time if all is well. */
export const hangMs = 300_000;

export interface EventuallyOptions {
  /** `hangMs` unless the service promises less. */
  readonly withinMs?: number;
  readonly everyMs?: number;
}

/** Resolves with the first value of `observe` that is neither undefined nor false. */
export async function eventually<Value>(
  observe: () => Promise<Value | undefined | false> | Value | undefined | false,
  { withinMs = hangMs, everyMs = 10 }: EventuallyOptions = {},
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

/** Rejects if `promise` has not settled after `hangMs`. */
export async function within<Value>(what: string, promise: Promise<Value>): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`hangs for more than ${hangMs} ms: ${what}`)), hangMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
