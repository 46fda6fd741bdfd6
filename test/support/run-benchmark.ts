/** Runs benchmarks as a user does. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { newDirectory } from './machine/temporary-directory.ts';

export const root = path.resolve(import.meta.dirname, '../..');

/** The report and what was printed; fails with the benchmark's words. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a test says what it reads of the report
export async function runBenchmark<Report>(
  ...args: readonly string[]
): Promise<{ readonly report: Report; readonly printed: string }> {
  const json = path.join(await newDirectory(), 'report.json');
  const { stdout } = await promisify(execFile)(process.execPath, ['bench/main.ts', ...args, '--json', json], {
    cwd: root,
    env: { PATH: process.env['PATH'] },
  });
  return { report: JSON.parse(readFileSync(json, 'utf8')) as Report, printed: stdout };
}
