/**
 * A thread that asks the service small questions in a row. So a wait in the test's own event loop is not taken for one
 * of the service. It posts the waits, in milliseconds, when it is asked to stop.
 */
import { Agent } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { exchange } from '../../../bench/lib/service/exchange.ts';

export interface ProbeTarget {
  readonly url: string;
  readonly apiKey: string;
  /** A POST of this body; a GET without one. */
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
 * Nobody asks while an answer is waited for, so one long wait would be one among thousands. Each stretch of this length
 * counts as a question that would have waited for the rest (G. Tene, "coordinated omission").
 */
const expectedMs = 50;

const { apiKey, body, url } = workerData as ProbeTarget;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const stop = new AbortController();
parentPort?.once('message', () => stop.abort());

const waitsMs: number[] = [];
let failures = 0;
while (!stop.signal.aborted) {
  const started = performance.now();
  const { status } = await exchange({ agent, url: new URL(url), apiKey, body });
  for (let ms = performance.now() - started; ms > 0; ms -= expectedMs) waitsMs.push(ms);
  if (status !== 200) failures += 1;
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
}
agent.destroy();
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage({ waitsMs, failures } satisfies ProbeResult);
