/**
 * Thread that asks the service small questions in a row, so that what holds the benchmark's own event loop is not
 * taken for the service's. It is handed a `ProbeTarget` and posts the waits, in milliseconds, when it is asked to stop.
 */
import { Agent } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { exchange } from '../lib/service/exchange.ts';

export interface ProbeTarget {
  readonly url: string;
  readonly path: string;
  readonly apiKey: string;
  /** A POST of this body; a GET where there is none. */
  readonly body?: string;
}

export interface ProbeResult {
  readonly waitsMs: readonly number[];
  /** Answers with another status than 200, and requests without an answer. */
  readonly failures: number;
}

/** Between an answer and the next question. */
const pauseMs = 5;
/**
 * While an answer is waited for nobody asks. Each such pause of this length counts as a question that would have waited
 * for the rest, or one long wait would be one among thousands (G. Tene, "coordinated omission").
 */
const expectedMs = 50;

const { path, apiKey, body, url: service } = workerData as ProbeTarget;
const url = new URL(path, service);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const stop = new AbortController();
parentPort?.once('message', () => stop.abort());

const waitsMs: number[] = [];
let failures = 0;
while (!stop.signal.aborted) {
  const started = performance.now();
  const { status } = await exchange({ agent, url, apiKey, body });
  for (let ms = performance.now() - started; ms > 0; ms -= expectedMs) waitsMs.push(ms);
  if (status !== 200) failures += 1;
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
}
agent.destroy();
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage({ waitsMs, failures } satisfies ProbeResult);
