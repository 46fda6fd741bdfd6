/** Work that a person or a view starts: its result, whether it still runs, and why it failed. */
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Work<Result> {
  readonly result: Result | undefined;
  readonly busy: boolean;
  readonly failure: string | undefined;
  readonly start: () => void;
}

/** If work was started twice, the later start counts. */
export function useWork<Result>(work: () => Promise<Result>): Work<Result> {
  const [state, setState] = useState<Omit<Work<Result>, 'start'>>({
    result: undefined,
    busy: false,
    failure: undefined,
  });
  const latest = useRef(0);
  const start = (): void => {
    const number = ++latest.current;
    const settle = (next: Partial<typeof state>): void => {
      if (number === latest.current) setState((before) => ({ ...before, busy: false, ...next }));
    };
    setState((before) => ({ ...before, busy: true, failure: undefined }));
    work().then(
      (result) => settle({ result }),
      (error: unknown) => settle({ failure: error instanceof Error ? error.message : String(error) }),
    );
  };
  return { ...state, start };
}

/** Starts at once, and again when one of `causes` changes. */
export function useLoaded<Result>(load: () => Promise<Result>, ...causes: readonly unknown[]): Work<Result> {
  const work = useWork(load);
  useEffect(() => work.start(), causes);
  return work;
}

/** Loads again after each period, while the page is seen. */
export function useUpdated<Result>(load: () => Promise<Result>, everyMs: number): Work<Result> {
  const work = useLoaded(load);
  const start = useRef(work.start);
  start.current = work.start;
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && start.current(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return work;
}
