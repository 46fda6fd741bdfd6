/** What a person sees while the benchmark runs: a line for each step, and at a terminal one that moves meanwhile. */

export interface Progress {
  /** A line that stays. */
  tell(line: string): void;
  /** The state of the moment; replaces the one before, nothing where there is no terminal. */
  show(line: string): void;
}

export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const eraseLine = '\r\u001B[2K';
const intervalMs = 200;

export function createProgress(
  stream: ProgressStream,
  nowMs: () => number = performance.now.bind(performance),
): Progress {
  const live = stream.isTTY === true;
  let shownAtMs = -Infinity;
  return {
    tell: (line) => {
      stream.write(`${live ? eraseLine : ''}${line}\n`);
    },
    show: (line) => {
      if (!live || nowMs() - shownAtMs < intervalMs) return;
      shownAtMs = nowMs();
      // One column less than there are: a full line would wrap and stay.
      stream.write(`${eraseLine}${line.slice(0, (stream.columns ?? 80) - 1)}`);
    },
  };
}
