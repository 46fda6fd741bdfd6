/** Commands that take long report progress on standard error also if it is no terminal. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ImportDisplay } from '../../src/cli/import/display.ts';
import { noTokens } from '../../src/cli/import/token-tally.ts';
import { startProgress } from '../../src/cli/progress.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function streamOf(written: string[]): NodeJS.WriteStream {
  return { isTTY: false, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream;
}

it('a line every five seconds says how far it is, until it stops', () => {
  const written: string[] = [];
  const progress = startProgress(streamOf(written), 200);
  vi.advanceTimersByTime(4_999);
  expect(written).toEqual([]);
  progress.update(50, '10 done');
  vi.advanceTimersByTime(1);
  progress.update(70, '12 done');
  progress.update(100, '20 done');
  vi.advanceTimersByTime(5_000);
  expect(written).toEqual(['maxsimd: 25%, 10 done\n', 'maxsimd: 50%, 20 done\n']);
  progress.stop();
  progress.stop();
  vi.advanceTimersByTime(60_000);
  expect(written).toHaveLength(2);
});

it('an input whose size is unknown is described by its counts alone', () => {
  const written: string[] = [];
  const progress = startProgress(streamOf(written), 0);
  progress.update(50, '10 done');
  vi.advanceTimersByTime(5_000);
  progress.stop();
  expect(written).toEqual(['maxsimd: 10 done\n']);
});

it('an import tells the documents that have no answer yet, also before its first batch is done', () => {
  const written: string[] = [];
  const display = new ImportDisplay(streamOf(written), 1_000);
  display.taken(64);
  vi.advanceTimersByTime(5_000);
  display.settled({ rows: 40, documents: 40, done: 38, failed: 2, tokens: noTokens }, 400);
  vi.advanceTimersByTime(5_000);
  display.settled({ rows: 64, documents: 64, done: 62, failed: 2, tokens: noTokens }, 1_000);
  vi.advanceTimersByTime(5_000);
  display.stop();
  expect(written).toEqual([
    'maxsimd: 0%, 0 done, 0 failed, 64 under way\n',
    'maxsimd: 40%, 38 done, 2 failed, 24 under way\n',
    'maxsimd: 100%, 62 done, 2 failed\n',
  ]);
});
