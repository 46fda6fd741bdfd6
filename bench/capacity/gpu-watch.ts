/** The utilisation of GPUs over time, from one `nvidia-smi` that keeps printing it. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface GpuUse {
  /** 0..1, of the busiest GPU. */
  readonly utilisation: number;
  readonly memoryBytes: number;
}

export interface GpuWatch {
  /** Mean since the last call; undefined without a GPU, or when nothing was reported meanwhile. */
  take(): GpuUse | undefined;
  close(): void;
}

const intervalMs = 500;

export function watchGpu(): GpuWatch {
  const reported = new Map<string, { sum: number; count: number; memoryBytes: number }>();
  const child = spawn(
    'nvidia-smi',
    [
      '--query-gpu=index,utilization.gpu,memory.used',
      '--format=csv,noheader,nounits',
      `--loop-ms=${intervalMs}`,
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  // Most machines have none.
  child.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const sample = parseGpuLine(line);
    if (sample === undefined) return;
    const so = reported.get(sample.index) ?? { sum: 0, count: 0, memoryBytes: 0 };
    so.sum += sample.utilisation;
    so.count += 1;
    so.memoryBytes = Math.max(so.memoryBytes, sample.memoryBytes);
    reported.set(sample.index, so);
  });
  return {
    take: () => {
      const uses = [...reported.values()].map(({ sum, count, memoryBytes }) => ({
        utilisation: sum / count,
        memoryBytes,
      }));
      reported.clear();
      return uses.toSorted((a, b) => b.utilisation - a.utilisation)[0];
    },
    close: () => void child.kill(),
  };
}

/** `0, 37, 1024`: index, percent, MiB. */
export function parseGpuLine(
  line: string,
): { readonly index: string; readonly utilisation: number; readonly memoryBytes: number } | undefined {
  const match = /^(\d+), (\d+), (\d+)$/.exec(line.trim());
  if (match === null) return undefined;
  const [, index = '', percent, mebibytes] = match;
  return { index, utilisation: Number(percent) / 100, memoryBytes: Number(mebibytes) * 2 ** 20 };
}
