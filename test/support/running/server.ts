/** Starts the real server as a child process and waits until it is ready. It ends with the tests of its file. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, inject } from 'vitest';

import { freePort } from '../../../deploy/local/free-port.ts';
import { sharedService } from '../shared-services.ts';
import { within } from './eventually.ts';
import {
  killLaunched,
  launchServer,
  makeScratch,
  type Exit,
  type Launch,
  type LaunchOptions,
  type ReadyLine,
} from './launch.ts';

export interface ServerOptions extends LaunchOptions {
  /** True = `/metrics` is served on a free port. By default it is off. */
  readonly metrics?: boolean;
  /** True = the server uses the encoder process that many test files share, and starts none of its own. */
  readonly sharedEncoder?: boolean;
}

export interface ServerProcess extends Launch {
  readonly url: string;
  readonly metricsUrl: string | undefined;
  readonly readyLine: ReadyLine;
  /** Sends SIGTERM and waits for the end of the process. */
  stop(): Promise<Exit>;
  /** Sends SIGKILL and waits for the end of the process. */
  kill(): Promise<Exit>;
}

// Registered first, so it runs last.
afterAll(killLaunched);

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
  const readyLine = await within('the start of the server', launch.ready);
  const end = async (name: NodeJS.Signals): Promise<Exit> => {
    launch.signal(name);
    return within(`the end of the server after ${name}`, launch.exited);
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

/** The value of a metric, or of one of its series. A metric with labels gives the sum over all of them. */
export async function readMetric(server: Pick<ServerProcess, 'metricsUrl'>, name: string): Promise<number> {
  if (server.metricsUrl === undefined) throw new Error('this server was started without metrics');
  const text = await (await fetch(server.metricsUrl)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  if (lines.length === 0) throw new Error(`no metric ${name}`);
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

/** Starts a server for this test file alone. Its admin API takes `operatorKey`. */
export function useAdminServer() {
  const operatorKey = randomBytes(32).toString('hex');
  let adminUrl = '';
  let server: ServerProcess | undefined;
  beforeAll(async () => {
    const scratch = await makeScratch();
    const file = path.join(scratch.root, 'operators');
    await writeFile(file, `${operatorKey}\n`);
    const port = await freePort();
    adminUrl = `http://127.0.0.1:${port}`;
    const env = { MAXSIMD_ADMIN_PORT: String(port), MAXSIMD_ADMIN_KEY_FILE: file };
    server = await startServer({ scratch, env, sharedEncoder: true });
  });
  afterAll(async () => {
    await server?.stop();
    await server?.scratch.remove();
  });
  return { operatorKey, adminUrl: () => adminUrl, server: () => server! };
}
