/**
 * The steps of a newcomer in an empty folder, each with its time. Programs are run as the guide says, on the Node that the
 * machine has; what npm set for this process is kept from them.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { copyFileSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { endWithThisProcess } from '../lib/endings.ts';
import { readyUrl } from '../lib/service/server-process.ts';
import { startApplication, type Searched } from './application.ts';

export interface Given {
  /** Empty; everything happens in it. */
  readonly folder: string;
  /** Packages as `npm run release` leaves them. */
  readonly packages: string;
  readonly documents: readonly { readonly doc_id: string; readonly text: string }[];
  readonly queries: readonly string[];
  /** The export of a second model. */
  readonly model: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onProgress: (line: string) => void;
}

export interface Step {
  readonly step: string;
  readonly seconds: number;
  readonly documents?: number;
}

interface Imported {
  readonly index: string;
  readonly documents: number;
  readonly failed: number;
}

export async function walk(
  given: Given,
): Promise<{ readonly steps: readonly Step[]; readonly searched: Searched }> {
  const { folder, packages, documents, onProgress } = given;
  const environment: Record<string, string | undefined> = { ...ownEnvironment(given.environment) };
  const steps: Step[] = [];
  const step = async <Value>(name: string, work: () => Promise<Value>, count?: number): Promise<Value> => {
    const started = performance.now();
    const value = await work();
    const seconds = (performance.now() - started) / 1000;
    steps.push({ step: name, seconds, ...(count === undefined ? {} : { documents: count }) });
    onProgress(`${name}: ${seconds.toFixed(1)} s`);
    return value;
  };
  const run = (program: string, ...args: readonly string[]): Promise<string> =>
    runIn(folder, environment, [program, ...args]);
  const importInto = async (name: string, ...model: readonly string[]): Promise<string> => {
    const printed = await run('venv/bin/python', 'import.py', 'documents.jsonl', name, ...model);
    const { index, documents: stored, failed } = JSON.parse(printed) as Imported;
    if (stored !== documents.length || failed !== 0)
      throw new Error(`${name}: ${stored} stored, ${failed} failed`);
    return index;
  };
  const writeFiles = (): void => {
    for (const name of ['import.py', 'search.mts'])
      copyFileSync(path.join(import.meta.dirname, name), path.join(folder, name));
    writeFileSync(
      path.join(folder, 'documents.jsonl'),
      documents.map((each) => `${JSON.stringify(each)}\n`).join(''),
    );
    writeFileSync(path.join(folder, 'queries.json'), JSON.stringify(given.queries));
  };
  const tarballs = filesOf(packages, '.tgz');
  const [wheel = ''] = filesOf(packages, '.whl');
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];

  await step('install the packages', async () =>
    run('npm', 'install', '--ignore-scripts=false', '--prefer-offline', ...quiet, ...tarballs),
  );
  await step('install the Python client', async () => {
    await run('python3', '-m', 'venv', 'venv');
    return run('venv/bin/python', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', wheel);
  });
  const server = spawn('npx', ['maxsimd', 'serve'], {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', openSync(path.join(folder, 'serve.log'), 'w')],
  });
  const forget = endWithThisProcess(() => killGroup(server.pid));
  environment['MAXSIMD_URL'] = await step('serve', async () => readyUrl(server));
  environment['MAXSIMD_API_KEY'] = readFileSync(path.join(folder, 'data/first-api-key'), 'utf8').trim();
  const limits = ['--requests-per-minute', '1000000', '--max-concurrent-requests', '8'];
  await step('raise the limits of the first tenant', async () =>
    run('npx', 'maxsimd', 'tenant', 'limits', 'default', ...limits),
  );

  writeFiles();
  const first = await step('import from Python', async () => importInto('first'), documents.length);
  const application = startApplication(folder, environment, first);
  await step('first search from TypeScript', async () => application.switchTo(first));
  await step('add a second model', async () =>
    run('npx', 'maxsimd', 'models', 'add', given.model, '--name', 'second'),
  );
  const second = await step(
    'import again under it',
    async () => importInto('second', 'second'),
    documents.length,
  );
  await step('switch the application', async () => application.switchTo(second));
  await step('delete the first index', async () =>
    run('npx', 'maxsimd', 'index', 'delete', 'first', '--yes'),
  );
  await setTimeout(1000);
  const searched = await application.end();
  await step('end', async () => {
    server.kill('SIGTERM');
    while (processesOf(folder) > 0) await setTimeout(50);
  });
  forget();
  return { steps, searched };
}

function filesOf(directory: string, ending: string): readonly string[] {
  const names = readdirSync(directory).filter((name) => name.endsWith(ending));
  if (names.length === 0)
    throw new Error(`${directory} holds no package (*${ending}): npm run release makes them`);
  return names.map((name) => path.resolve(directory, name));
}

/** What a shell of the user's has. */
function ownEnvironment(given: Given['environment']): Record<string, string | undefined> {
  const entries = Object.entries(given).filter(([name]) => !/^(npm_|NODE|MAXSIMD|VITEST)/i.test(name));
  const outside = (given['PATH'] ?? '').split(':').filter((entry) => !entry.includes('node_modules'));
  return {
    ...Object.fromEntries(entries),
    PATH: outside.join(':'),
    MAXSIMD_HTTP_PORT: '0',
    MAXSIMD_METRICS_PORT: '-1',
  };
}

/** What a program prints; its standard error is shown as it comes. */
async function runIn(
  folder: string,
  environment: Readonly<Record<string, string | undefined>>,
  [program = '', ...args]: readonly string[],
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd: folder, env: environment, maxBuffer: 2 ** 26 };
    const child = execFile(program, args, options, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
    child.stderr?.pipe(process.stderr);
  });
}

/** How many there are whose command line names the packages in the folder. */
function processesOf(folder: string): number {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'args='], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => line.includes(`${folder}/node_modules/`)).length;
}

function killGroup(group: number | undefined): void {
  try {
    if (group !== undefined) process.kill(-group, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
