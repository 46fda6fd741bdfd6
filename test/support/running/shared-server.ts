/**
 * One server for all test files that need no server of their own: each has tenants of its own there. It runs beside the
 * process of vitest, which starts it when the first file asks for it, and ends it after the last.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import { killLaunched, launchServer, makeScratch, type ReadyLine } from './launch.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Answers with the `SharedServer`, once it is ready. */
    readonly sharedServerUrl: string;
  }
}

export interface SharedServer {
  readonly url: string;
  readonly readyLine: ReadyLine;
  readonly scratch: { readonly data: string; readonly temporary: string };
}

/** vitest's `globalSetup`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const scratch = await makeScratch();
  let started: Promise<SharedServer> | undefined;
  const start = async (): Promise<SharedServer> => {
    const readyLine = await (await launchServer({ scratch })).ready;
    return { url: readyLine.url, readyLine, scratch };
  };
  const asked = createServer(async (_request, response) => {
    try {
      response.end(JSON.stringify(await (started ??= start())));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  asked.listen(0, '127.0.0.1');
  await new Promise((resolve) => asked.once('listening', resolve));
  project.provide('sharedServerUrl', `http://127.0.0.1:${(asked.address() as AddressInfo).port}`);
  return async () => {
    asked.close();
    killLaunched();
    await scratch.remove();
  };
}
