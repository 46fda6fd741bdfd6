/** Reports calls to other services. A layer calls a plain function and knows nothing of metrics. */

export type CallObserver = (call: {
  /** From a small fixed set. */
  readonly operation: string;
  readonly seconds: number;
  readonly failed: boolean;
}) => void;

/** Runs `work` and reports it. `isFailure` says whether an error is a failure of the other service. */
export async function observed<T>(
  observe: CallObserver | undefined,
  operation: string,
  work: () => Promise<T>,
  isFailure: (error: unknown) => boolean = () => true,
): Promise<T> {
  const startedAt = performance.now();
  const report = (failed: boolean): void =>
    observe?.({ operation, seconds: (performance.now() - startedAt) / 1000, failed });
  try {
    const result = await work();
    report(false);
    return result;
  } catch (error) {
    report(isFailure(error));
    throw error;
  }
}
