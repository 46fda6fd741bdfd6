/**
 * The floor under a search's overhead on this machine: the same bytes over bare Fastify and over a bare gRPC stream, one
 * after another and with a pause before each, because in a search both ends have slept, too.
 */
import { ChannelCredentials } from '@grpc/grpc-js';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { QueryClient } from '../../src/encoder/client/query-client.ts';
import { EncoderClient } from '../../src/encoder/protocol/wire.ts';
import { endWithThisProcess, scratchFolder } from '../lib/endings.ts';
import { readyUrl } from '../lib/service/server-process.ts';
import { median } from '../lib/statistics.ts';
import { Connection, requestText } from '../lib/service/connection.ts';

/** Medians, milliseconds, there and back. */
export interface Floor {
  readonly http: number;
  readonly grpc: number;
}

export interface FloorOptions {
  readonly query: string;
  readonly answerCharacters: number;
  readonly rows: number;
  readonly dim: number;
}

const exchanges = 1000;
const warmUpExchanges = 1000;
const pauseMs = 3;

export async function measureFloor(options: FloorOptions): Promise<Floor> {
  using folder = scratchFolder('floor');
  const socket = path.join(folder.path, 'floor.sock');
  const { answerCharacters, rows, dim } = options;
  const entry = path.join(import.meta.dirname, 'floor-process.ts');
  const server = spawn(
    process.execPath,
    [entry, String(answerCharacters), String(rows), String(dim), socket],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const end = (): void => void server.kill();
  const forget = endWithThisProcess(end);
  try {
    const url = await readyUrl(server);
    return {
      http: await overHttp(url, options.query),
      grpc: await overGrpc(`unix:${socket}`, options.query),
    };
  } finally {
    end();
    forget();
  }
}

async function overHttp(url: string, query: string): Promise<number> {
  const connection = new Connection(url);
  const request = requestText(new URL(url), { query });
  try {
    return await medianOf(async () => (await connection.exchange(request)).totalMs);
  } finally {
    connection.close();
  }
}

async function overGrpc(address: string, query: string): Promise<number> {
  const client = new EncoderClient(address, ChannelCredentials.createInsecure());
  const stream = new QueryClient({ open: () => client.encodeQueries(), onDraining: () => undefined });
  const request = { model: { name: 'floor', version: '1' }, tenantId: 'floor', text: query };
  const { signal } = new AbortController();
  try {
    return await medianOf(async () => {
      const startedAt = performance.now();
      await stream.query(request, Date.now() + 10_000, signal);
      return performance.now() - startedAt;
    });
  } finally {
    stream.close(new Error('measured'));
    client.close();
  }
}

async function medianOf(exchange: () => Promise<number>): Promise<number> {
  for (let i = 0; i < warmUpExchanges; i++) await exchange();
  const times: number[] = [];
  for (let i = 0; i < exchanges; i++) {
    await pause(pauseMs);
    times.push(await exchange());
  }
  return median(times);
}
