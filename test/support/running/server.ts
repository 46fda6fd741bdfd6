/** The real server as a child process, waited for, with its metrics. It ends with the tests of its file. */
import { afterAll, inject } from 'vitest';

import type { Constants } from '../../../src/app/config.ts';
import { freePort } from '../../../deploy/local/free-port.ts';
import { sharedService } from '../shared-services.ts';
import { within } from './eventually.ts';
import {
  killLaunched,
  launchServer,
  type Exit,
  type Launch,
  type LaunchOptions,
  type ReadyLine,
} from './launch.ts';

export const repositoryRoot = path.resolve(import.meta.dirname, '../../..');
const entryWithConstants = path.join(repositoryRoot, 'test/support/main-with-constants.ts');
export const entryPoint = path.join(repositoryRoot, 'src/cli/main.ts');

export interface ServerOptions {
  /** A directory made by `makeScratch`; a fresh one by default. */
  readonly scratch?: Scratch;
  /** Variables of the server; they win over the harness's. */
  readonly env?: Readonly<Record<string, string>>;
  /** Constants that no variable sets, in place of the server's own. */
  readonly constants?: Partial<Constants>;
  /** Serves `/metrics` on a free port (off by default). */
  readonly metrics?: boolean;
  /** Encodes by the process that many files share: it starts no encoder of its own. */
  readonly sharedEncoder?: boolean;
}

export interface ServerProcess extends Launch {
  readonly url: string;
  readonly metricsUrl: string | undefined;
  readonly readyLine: ReadyLine;
  /** SIGTERM, then the end of the process. */
  stop(): Promise<Exit>;
  /** SIGKILL, then the end of the process. */
  kill(): Promise<Exit>;
}

/** Where one server lives: `data` is its data directory, `temporary` its TMPDIR. */
export interface Scratch {
  readonly root: string;
  readonly data: string;
  readonly temporary: string;
  remove(): Promise<void>;
}

export async function makeScratch(): Promise<Scratch> {
  const root = await mkdtemp(path.join(tmpdir(), 'maxsimd-e2e-'));
  const temporary = path.join(root, 't');
  await mkdir(temporary);
  return {
    root,
    data: path.join(root, 'data'),
    temporary,
    remove: () => rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }),
  };
}

/** The environment of a child: this one's without what is set for the service or its inference runtime, plus `own`. */
export function childEnvironment(own: Readonly<Record<string, string>>): Record<string, string> {
  const inherited = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(MAXSIMD_|ORT_|VITEST)/.test(entry[0]),
  );
  return { ...Object.fromEntries(inherited), NODE_ENV: 'production', ...clusterEnvironment(), ...own };
}

/** Variables by which every process of the tests takes part in a cluster (`end-to-end/cluster`); none without one. */
export function clusterEnvironment(): Readonly<Record<string, string>> {
  return JSON.parse(process.env['TEST_CLUSTER'] ?? '{}') as Record<string, string>;
}

export function isClustered(): boolean {
  return Object.keys(clusterEnvironment()).length > 0;
}

/** Starts the process and returns at once. */
export async function launchServer(options: ServerOptions = {}): Promise<Launch> {
  const scratch = options.scratch ?? (await makeScratch());
  const entry =
    options.constants === undefined ? [entryPoint] : [entryWithConstants, JSON.stringify(options.constants)];
  const child = spawn(process.execPath, [...entry, 'serve'], {
    cwd: scratch.root,
    env: childEnvironment({
      TMPDIR: scratch.temporary,
      MAXSIMD_DATA_DIR: scratch.data,
      MAXSIMD_HTTP_PORT: '0',
      MAXSIMD_METRICS_PORT: '-1',
      ...options.env,
    }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return follow(child, scratch);
}

/** Starts the server and waits for its ready line. */
export async function startServer(options: ServerOptions = {}): Promise<ServerProcess> {
  const metricsPort = options.metrics === true ? String(await freePort()) : undefined;
  const launch = await launchServer({
    ...options,
    env: {
      ...(metricsPort === undefined ? {} : { MAXSIMD_METRICS_PORT: metricsPort }),
      ...(options.sharedEncoder === true
        ? { MAXSIMD_ENCODERS: await sharedService(inject('sharedServicesUrl'), 'encoder') }
        : {}),
      ...options.env,
    },
  });
  const readyLine = await within(60_000, 'the start of the server', launch.ready);
  const end = async (name: NodeJS.Signals): Promise<Exit> => {
    launch.signal(name);
    return within(40_000, `the end of the server after ${name}`, launch.exited);
  };
  return {
    ...launch,
    url: readyLine.url,
    metricsUrl: metricsPort === undefined ? undefined : `http://127.0.0.1:${metricsPort}/metrics`,
    readyLine,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

/** The value of a metric, or of one series of it; of a metric with labels the sum over them. */
export async function readMetric(server: Pick<ServerProcess, 'metricsUrl'>, name: string): Promise<number> {
  if (server.metricsUrl === undefined) throw new Error('this server was started without metrics');
  const text = await (await fetch(server.metricsUrl)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  if (lines.length === 0) throw new Error(`no metric ${name}`);
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
