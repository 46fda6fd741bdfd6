/** A progress bar on a terminal; nothing at all where standard error is no terminal. */
import { Presets, SingleBar } from 'cli-progress';

export interface Progress {
  update(value: number, note: string): void;
  /** Idempotent. */
  stop(): void;
}

const silent: Progress = { update: () => {}, stop: () => {} };

export function startProgress(stream: NodeJS.WriteStream, total: number): Progress {
  if (!stream.isTTY || total === 0) return silent;
  const bar = new SingleBar(
    {
      format: '{bar} {percentage}%  {duration_formatted}  {note}',
      stream,
      barsize: 30,
      clearOnComplete: true,
    },
    Presets.shades_classic,
  );
  bar.start(total, 0, { note: '' });
  return {
    update: (value, note) => bar.update(value, { note }),
    stop: () => {
      if (bar.isActive) bar.stop();
    },
  };
}
