/**
 * Services that many test files share: a server on which each file has tenants of its own, an encoder, a PostgreSQL with a
 * database for each catalog, and an object store with a prefix for each. The main process of vitest starts each service when the
 * first file asks for it, and ends all of them after the last file.
 */
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { freePort } from '../../deploy/local/free-port.ts';
import { installServers } from '../../deploy/local/install.ts';
import { startPostgres, type RunningPostgres } from '../../deploy/local/postgres.ts';
import { startSeaweed, type RunningSeaweed } from '../../deploy/local/seaweedfs.ts';
import { startEncoderProcess } from './running/encoder-process.ts';
import { killLaunched, launchServer, makeScratch, type ReadyLine } from './running/launch.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Each of `SharedServices` has a page below this URL. The page answers once the service is ready. */
    readonly sharedServicesUrl: string;
  }
}

export interface SharedServer {
  readonly url: string;
  readonly readyLine: ReadyLine;
  readonly scratch: { readonly data: string; readonly temporary: string };
}

export interface SharedServices {
  /** `host:port` of an encoder of the default model. */
  readonly encoder: string;
  readonly server: SharedServer;
  readonly postgres: Pick<RunningPostgres, 'url'>;
  readonly seaweed: Pick<RunningSeaweed, 'bucket' | 'environment'>;
}

type Starts = { readonly [Name in keyof SharedServices]: () => Promise<SharedServices[Name]> };

/** Vitest calls this before all test files (`globalSetup`). */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const scratch = await makeScratch();
  const ends: (() => Promise<void>)[] = [];
  const starts: Starts = {
    encoder: async () => {
      const encoder = await startEncoderProcess();
      ends.push(() => encoder.kill());
      return encoder.address;
    },
    server: async () => {
      const readyLine = await (await launchServer({ scratch })).ready;
      return { url: readyLine.url, readyLine, scratch };
    },
    postgres: async () => {
      // PostgreSQL runs as another user, which must be able to enter the directory.
      await chmod(scratch.root, 0o755);
      const { postgres: programs } = await installServers();
      const directory = path.join(scratch.root, 'postgres');
      const postgres = await startPostgres({ programs, directory, port: await freePort() });
      ends.push(() => postgres.stop());
      return { url: postgres.url };
    },
    seaweed: async () => {
      const { weed: program } = await installServers();
      const directory = path.join(scratch.root, 'seaweed');
      const seaweed = await startSeaweed({
        program,
        directory,
        port: await freePort(),
      });
      ends.push(() => seaweed.stop());
      return { bucket: seaweed.bucket, environment: seaweed.environment };
    },
  };
  const stopAnswering = await answer(project, starts);
  return async () => {
    stopAnswering();
    killLaunched();
    await Promise.all(ends.map((end) => end()));
    await scratch.remove();
  };
}

async function answer(project: TestProject, starts: Starts): Promise<() => void> {
  const started = new Map<string, Promise<unknown>>();
  const pages = createServer(async ({ url = '' }, response) => {
    const name = url.slice(1) as keyof Starts;
    const service = started.get(name) ?? starts[name]();
    started.set(name, service);
    try {
      response.end(JSON.stringify(await service));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  pages.listen(0, '127.0.0.1');
  await new Promise((resolve) => pages.once('listening', resolve));
  project.provide('sharedServicesUrl', `http://127.0.0.1:${(pages.address() as AddressInfo).port}`);
  return () => void pages.close();
}

/** Waits for a service. Test files call it, with `inject('sharedServicesUrl')` as `url`. */
export async function sharedService<Name extends keyof SharedServices>(
  url: string,
  name: Name,
): Promise<SharedServices[Name]> {
  const response = await fetch(`${url}/${name}`);
  if (!response.ok) throw new Error(`${name} did not start: ${await response.text()}`);
  return (await response.json()) as SharedServices[Name];
}
