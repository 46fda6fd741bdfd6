/**
 * A thread that sends the requests of one tenant in turn, `lanes` of them at a time. A wait in the benchmark's own event loop is
 * then not taken for one of the service. `begin` starts it. After `end` it sends no more, and posts what it asked once every
 * answer has come.
 */
import { Agent } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { lowerPriority } from '../../src/process/process-tuning.ts';
import { exchange } from '../lib/service/exchange.ts';

export interface AskerRequest {
  readonly path: string;
  /** A GET where there is none. */
  readonly body?: string;
}

export interface AskerOrder {
  readonly url: string;
  readonly apiKey: string;
  readonly requests: readonly AskerRequest[];
  readonly lanes: number;
  /** A lane sends its next request no earlier than so long after its last one, and at once after a slower answer. */
  readonly intervalMs: number;
  /** The least pause between an answer and the next request. */
  readonly pauseMs: number;
  readonly niceness: number;
}

export interface Asked {
  readonly waitsMs: readonly number[];
  /** How often each status was answered; 0 = no answer. */
  readonly statuses: Readonly<Record<string, number>>;
}

const { url, apiKey, requests, lanes, intervalMs, pauseMs, niceness } = workerData as AskerOrder;
// On Linux this affects this thread alone.
if (niceness > 0) lowerPriority(niceness);
const agent = new Agent({ keepAlive: true, maxSockets: lanes });
let next = 0;
let ended = new AbortController();

parentPort?.on('message', (order: 'begin' | 'end' | 'close') => {
  if (order === 'begin') {
    ended = new AbortController();
    void ask(ended.signal);
  } else if (order === 'end') ended.abort();
  else {
    agent.destroy();
    parentPort?.close();
  }
});

async function ask(until: AbortSignal): Promise<void> {
  const waitsMs: number[] = [];
  const statuses: Record<string, number> = {};
  const lane = async (): Promise<void> => {
    while (!until.aborted) {
      const { path, body } = requests[next++ % requests.length]!;
      const startedAt = performance.now();
      const { status } = await exchange({ agent, url: new URL(path, url), apiKey, body });
      const waitMs = performance.now() - startedAt;
      waitsMs.push(waitMs);
      statuses[status] = (statuses[status] ?? 0) + 1;
      await elapse(Math.max(pauseMs, intervalMs - waitMs), until);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage({ waitsMs, statuses } satisfies Asked);
}

function elapse(ms: number, until: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      until.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    until.addEventListener('abort', done, { once: true });
    if (until.aborted) done();
  });
}
