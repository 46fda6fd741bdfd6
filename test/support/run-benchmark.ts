/** Runs benchmarks as a user does. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { newDirectory } from './machine/temporary-directory.ts';

export const root = path.resolve(import.meta.dirname, '../..');

/** The environment has no settings of this process, except the folder for compiled code. */
export const benchmarkEnvironment = {
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
};
/** The small model. A benchmark of the service runs the same code with it. */
export const tinyModel = {
  MAXSIMD_MODELS_DIR: path.join(root, 'test/fixtures'),
  MAXSIMD_MODEL: 'colbert-tiny/1',
};

/** Runs a benchmark. Returns its report and its output. Throws with its output if it fails. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a test says what it reads of the report
export async function runBenchmark<Report>(...args: readonly string[]): Promise<Ran<Report>> {
  return run(args, benchmarkEnvironment);
}

/** Runs a benchmark that starts the service, with the small model. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as above
export async function runServiceBenchmark<Report>(...args: readonly string[]): Promise<Ran<Report>> {
  return run(args, { ...benchmarkEnvironment, ...tinyModel });
}

interface Ran<Report> {
  readonly report: Report;
  readonly printed: string;
}

async function run<Report>(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ran<Report>> {
  const json = path.join(await newDirectory(), 'report.json');
  const { stdout } = await promisify(execFile)(process.execPath, ['bench/main.ts', ...args, '--json', json], {
    cwd: root,
    env,
  });
  return { report: JSON.parse(readFileSync(json, 'utf8')) as Report, printed: stdout };
}
