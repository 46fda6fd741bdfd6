/**
 * The whole service for the contract suite, in this process: HTTP front end, service, catalog, engine and files. Its encoder takes
 * words for tokens. So a test file needs no port and starts at once. If the suite runs with threads of the API or with nodes,
 * it asks a server with the real model instead.
 */
import { randomUUID } from 'node:crypto';
import type { InjectOptions } from 'fastify';
import { createRequestObserver } from '../../../src/http/observation.ts';
import { createHttpServer } from '../../../src/http/server.ts';
import { createLogger } from '../../../src/observation/logging.ts';
import { createMetrics } from '../../../src/observation/metrics.ts';
import { wordModel } from '../encoder/word-encoder.ts';
import { openServiceStage } from './service-stage.ts';
import { serveInProcess } from '../running/client.ts';
import { runHere } from '../commands/command-here.ts';
import { stageOf, type Stage } from './tenant-stage.ts';

export interface ContractServer {
  readonly url: string;
  readonly readyLine: { readonly model: string; readonly model_version: string };
}

export async function useContractStage(): Promise<Stage<ContractServer>> {
  if (process.env['TEST_CLUSTER'] !== undefined || process.env['MAXSIMD_API_THREADS'] !== undefined) {
    const { useSharedStage } = await import('../running/stage.ts');
    return useSharedStage();
  }
  return stageOf({
    start: startHere,
    end: (server) => server.close(),
    operated: ({ url, directory }) => ({
      url,
      run: (args) => runHere(args, { environment: { MAXSIMD_DATA_DIR: directory } }),
    }),
  });
}

async function startHere() {
  const stage = await openServiceStage(undefined, {}, { nowMs: Date.now });
  const metrics = createMetrics();
  const logger = createLogger({ level: 'error' });
  const app = await createHttpServer({
    service: stage.service,
    observer: createRequestObserver(logger, metrics),
  });
  const url = `http://${randomUUID()}.test`;
  serveInProcess(url, async (address, request) => {
    const { pathname, search } = new URL(address);
    const asked: InjectOptions = {
      method: request.method as 'GET',
      url: pathname + search,
      headers: Object.fromEntries(new Headers(request.headers)),
      ...(typeof request.body === 'string' ? { payload: request.body } : {}),
      ...(request.body instanceof Uint8Array ? { payload: Buffer.from(request.body) } : {}),
      ...(request.signal instanceof AbortSignal ? { signal: request.signal } : {}),
    };
    const { statusCode, headers, rawPayload } = await app.inject(asked);
    const answer = new Headers();
    for (const [name, value] of Object.entries(headers)) answer.set(name, String(value));
    return new Response(rawPayload, { status: statusCode, headers: answer });
  });
  return {
    url,
    directory: stage.directory,
    readyLine: { model: wordModel.name, model_version: wordModel.version },
    close: async () => {
      await app.close();
      await stage[Symbol.asyncDispose]();
    },
  };
}
