/**
 * The load of one sender. It sends every request when it is due, even if earlier ones have no answer yet, and its latency counts
 * from then (no coordinated omission). A request that cannot be sent because too many are outstanding counts as failed.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import { exchange } from '../lib/service/exchange.ts';
import type { Arrival, Operation } from './schedule.ts';

export interface RequestBody {
  readonly path: string;
  readonly body: string;
}

export interface Sample {
  readonly operation: Operation;
  readonly dueMs: number;
  readonly latencyMs: number;
  /** HTTP status; 0 = no answer (connection error, time-out, or never sent). */
  readonly status: number;
}

type Due = Pick<Arrival, 'operation' | 'dueMs'>;

interface ToService {
  readonly url: string;
  readonly apiKey: string;
  readonly outstandingMax: number;
  readonly timeoutMs: number;
  /** Once it aborts, nothing more is sent, and the open requests are waited for. */
  readonly signal: AbortSignal;
}

export interface LoadOptions<Request extends Due> extends ToService {
  readonly arrivals: readonly Request[];
  readonly bodyOf: (arrival: Request) => RequestBody;
  /** Waits for whole milliseconds only. At high rates, yielding turns takes a core from a service on the same machine. */
  readonly coarse?: boolean;
  readonly onSample?: (sample: Sample) => void;
}

export interface Load {
  readonly samples: readonly Sample[];
  /** How late each request was sent. */
  readonly sendLagsMs: readonly number[];
}

/** Resolves when every request has been answered or given up; the generator's own lag is in the result. */
export async function runLoad<Request extends Due>(options: LoadOptions<Request>): Promise<Load> {
  const { outstandingMax } = options;
  const service = connected(options);
  const samples: Sample[] = [];
  const outstanding = new Set<Promise<void>>();
  const start = performance.now();
  const sendLagsMs: number[] = [];
  for (const arrival of options.arrivals) {
    await sleepUntil(start + arrival.dueMs, options.coarse ?? false);
    if (options.signal.aborted) break;
    sendLagsMs.push(performance.now() - start - arrival.dueMs);
    const note = (status: number): void => {
      const { operation, dueMs } = arrival;
      const sample = { operation, dueMs, latencyMs: performance.now() - start - dueMs, status };
      samples.push(sample);
      options.onSample?.(sample);
    };
    if (outstanding.size >= outstandingMax) {
      note(0);
      continue;
    }
    const answered = service
      .send(options.bodyOf(arrival))
      .then(note)
      .finally(() => outstanding.delete(answered));
    outstanding.add(answered);
  }
  await Promise.all(outstanding);
  service.close();
  return { samples, sendLagsMs };
}

function connected({ url, apiKey, outstandingMax, timeoutMs }: ToService) {
  const { Agent } = url.startsWith('https:') ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: outstandingMax });
  return {
    send: async ({ path, body }: RequestBody): Promise<number> =>
      (await exchange({ agent, url: new URL(path, url), apiKey, body, timeoutMs })).status,
    close: () => agent.destroy(),
  };
}

/** Timers count whole milliseconds and are late by up to one. So the last stretch is waited for by yielding turns. */
async function sleepUntil(dueMs: number, coarse: boolean): Promise<void> {
  const left = dueMs - performance.now();
  const whole = coarse ? Math.ceil(left) : Math.floor(left - 0.5);
  if (whole > 0) await new Promise((resolve) => setTimeout(resolve, whole));
  if (coarse) return;
  while (performance.now() < dueMs) await new Promise((resolve) => setImmediate(resolve));
}
