/**
 * Open-loop load: every request is sent when it is due, whatever became of the ones before it, and its
 * latency runs from the moment it was due (no coordinated omission). Requests that cannot be sent because
 * too many are outstanding count as failed.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Arrival, Operation } from './schedule.ts';

export interface RequestBody {
  readonly method: 'POST';
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
  /** Sends nothing more once aborted; what is out is waited for. */
  readonly signal: AbortSignal;
  readonly onSample: (sample: Sample, outstanding: number) => void;
}

/** Resolves when every request has been answered or given up; the generator's own lag is in the result. */
export async function runLoad(
  options: LoadOptions,
): Promise<{ readonly samples: readonly Sample[]; readonly sendLagsMs: readonly number[] }> {
  const transport = new URL(options.url).protocol === 'https:' ? https : http;
  const agent = new transport.Agent({ keepAlive: true, maxSockets: options.outstandingMax });
  const samples: Sample[] = [];
  const outstanding = new Set<Promise<void>>();
  const start = performance.now();
  const sendLagsMs: number[] = [];
  for (const arrival of options.arrivals) {
    await sleepUntil(start + arrival.dueMs);
    if (options.signal.aborted) break;
    sendLagsMs.push(performance.now() - start - arrival.dueMs);
    const note = (status: number): void => {
      const { operation, dueMs } = arrival;
      const sample = { operation, dueMs, latencyMs: performance.now() - start - dueMs, status };
      samples.push(sample);
      options.onSample(sample, outstanding.size);
    };
    if (outstanding.size >= options.outstandingMax) {
      note(0);
      continue;
    }
    const answered = send({ request: transport.request, agent }, options, options.bodyOf(arrival))
      .then(note)
      .finally(() => outstanding.delete(answered));
    outstanding.add(answered);
  }
  await Promise.all(outstanding);
  agent.destroy();
  return { samples, sendLagsMs };
}

/** Timers count whole milliseconds and are late by up to one: the last stretch is waited for by yielding turns. */
async function sleepUntil(dueMs: number): Promise<void> {
  const whole = Math.floor(dueMs - performance.now() - 0.5);
  if (whole > 0) await new Promise((resolve) => setTimeout(resolve, whole));
  while (performance.now() < dueMs) await new Promise((resolve) => setImmediate(resolve));
}

function send(
  { request: requestOf, agent }: { request: typeof http.request; agent: http.Agent },
  options: LoadOptions,
  body: RequestBody,
): Promise<number> {
  return new Promise((resolve) => {
    const request = requestOf(
      new URL(body.path, options.url),
      {
        agent,
        method: body.method,
        timeout: options.timeoutMs,
        headers: {
          authorization: `Bearer ${options.apiKey}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body.body),
        },
      },
      (response) => {
        response.on('end', () => resolve(response.statusCode ?? 0));
        response.on('error', () => resolve(0));
        response.resume();
      },
    );
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(0));
    request.end(body.body);
  });
}
