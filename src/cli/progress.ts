/** Shows progress: a bar on a terminal, and elsewhere a line every few seconds. */
import { Presets, SingleBar } from 'cli-progress';
import { mebibytes } from './output.ts';

export interface Progress {
  update(value: number, note: string): void;
  /** Writes a line that stays. */
  say(line: string): void;
  /** May be called again. */
  stop(): void;
}

const lineEveryMs = 5_000;

/** A `total` of 0 means that it is unknown. */
export function startProgress(stream: NodeJS.WriteStream, total: number): Progress {
  return stream.isTTY ? startBar(stream, total) : startLines(stream, total);
}

/** Calls `work` with what counts bytes of about `total`, shows the count, and throws the reason of an aborted signal. */
export async function withByteProgress<T>(
  { signal, stderr }: { readonly signal: AbortSignal; readonly stderr: NodeJS.WriteStream },
  total: number,
  work: (onBytes: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  const progress = startProgress(stderr, total);
  let bytes = 0;
  try {
    return await work((part) => {
      signal.throwIfAborted();
      bytes += part;
      progress.update(bytes, `${mebibytes(bytes)} MiB`);
    });
  } finally {
    progress.stop();
  }
}

function startBar(stream: NodeJS.WriteStream, total: number): Progress {
  const bar = new SingleBar(
    {
      format: `${total === 0 ? '' : '{bar} {percentage}%  '}{duration_formatted}  {note}`,
      stream,
      barsize: 30,
      clearOnComplete: true,
    },
    Presets.shades_classic,
  );
  bar.start(Math.max(1, total), 0, { note: '' });
  return {
    update: (value, note) => bar.update(total === 0 ? 0 : value, { note }),
    // The bar redraws itself below.
    say: (said) => stream.write(`\r\u001B[K${said}\n`),
    stop: () => {
      if (bar.isActive) bar.stop();
    },
  };
}

function startLines(stream: NodeJS.WriteStream, total: number): Progress {
  let line = 'nothing done yet';
  const timer = setInterval(() => stream.write(`maxsimd: ${line}\n`), lineEveryMs);
  timer.unref();
  return {
    update: (value, note) => {
      line = total === 0 ? note : `${Math.floor((100 * value) / total)}%, ${note}`;
    },
    say: (said) => stream.write(`${said}\n`),
    stop: () => clearInterval(timer),
  };
}
