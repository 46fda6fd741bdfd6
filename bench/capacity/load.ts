/**
 * Open-loop load. Every request is sent when it is due, even if earlier ones have no answer yet, and its latency counts from then
 * (no coordinated omission). A request that cannot be sent because too many are outstanding counts as failed.
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

export interface LoadOptions {
  readonly url: string;
  readonly apiKey: string;
  readonly arrivals: readonly Arrival[];
  readonly bodyOf: (arrival: Arrival) => RequestBody;
  readonly outstandingMax: number;
  readonly timeoutMs: number;
  /** Waits for whole milliseconds only. At high rates, yielding turns takes a core from a service on the same machine. */
  readonly coarse?: boolean;
  /** Once it aborts, nothing more is sent, and the open requests are waited for. */
  readonly signal: AbortSignal;
  readonly onSample?: (sample: Sample) => void;
}

/** Resolves when every request has been answered or given up; the generator's own lag is in the result. */
export async function runLoad(
  options: LoadOptions,
): Promise<{ readonly samples: readonly Sample[]; readonly sendLagsMs: readonly number[] }> {
  const { url, apiKey, timeoutMs, outstandingMax } = options;
  const { Agent } = url.startsWith('https:') ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: outstandingMax });
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
    const { path, body } = options.bodyOf(arrival);
    const answered = exchange({ agent, url: new URL(path, url), apiKey, body, timeoutMs })
      .then(({ status }) => note(status))
      .finally(() => outstanding.delete(answered));
    outstanding.add(answered);
  }
  await Promise.all(outstanding);
  agent.destroy();
  return { samples, sendLagsMs };
}

/** Timers count whole milliseconds and are late by up to one. So the last stretch is waited for by yielding turns. */
async function sleepUntil(dueMs: number, coarse: boolean): Promise<void> {
  const left = dueMs - performance.now();
  const whole = coarse ? Math.ceil(left) : Math.floor(left - 0.5);
  if (whole > 0) await new Promise((resolve) => setTimeout(resolve, whole));
  if (coarse) return;
  while (performance.now() < dueMs) await new Promise((resolve) => setImmediate(resolve));
}
