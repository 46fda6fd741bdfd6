/** The processes that send the load. One event loop is at its end at some 1,600 requests a second, so each has a share of them. */
import { fork, type ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { integer } from '../lib/options.ts';
import type { Load, RequestBody } from './load.ts';
import type { Arrival } from './schedule.ts';

export interface Share {
  readonly url: string;
  readonly apiKey: string;
  readonly requests: readonly (RequestBody & Pick<Arrival, 'operation' | 'dueMs'>)[];
  readonly outstandingMax: number;
  readonly timeoutMs: number;
}

export interface SentShare extends Load {
  /** Cores that the sender used. */
  readonly cores: number;
}

export type ToSender = Share | 'begin' | 'stop';
export type FromSender = SentShare | 'ready';

const entry = path.join(import.meta.dirname, 'sender.ts');

export const senders = integer(
  Math.max(1, Math.floor(availableParallelism() / 4)),
  'processes that send the requests',
);

export class Senders {
  readonly #processes: readonly ChildProcess[];

  constructor(count: number) {
    this.#processes = Array.from({ length: count }, () =>
      // In a process group of its own: an interrupt at the terminal comes to the benchmark alone.
      fork(entry, { detached: true, serialization: 'json' }),
    );
  }

  get count(): number {
    return this.#processes.length;
  }

  /** As many shares as there are senders, which begin together. Once the signal aborts, the open requests are waited for. */
  async send(shares: readonly Share[], signal: AbortSignal): Promise<readonly SentShare[]> {
    const inAll = this.#processes.map((child, at) => ({ child, share: shares[at]! }));
    await Promise.all(inAll.map(async ({ child, share }) => exchanged(child, share)));
    const stop = (): void => inAll.forEach(({ child }) => child.send('stop'));
    const sent = inAll.map(async ({ child }) => exchanged(child, 'begin'));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      return (await Promise.all(sent)) as readonly SentShare[];
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  [Symbol.dispose](): void {
    for (const child of this.#processes) child.disconnect();
  }
}

/** Sends a message and gives the answer; fails when the process ends before. */
async function exchanged(child: ChildProcess, message: ToSender): Promise<FromSender> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('a sender of the load ended by itself'));
    child.once('exit', onExit);
    child.once('message', (answer) => {
      child.off('exit', onExit);
      resolve(answer as FromSender);
    });
    child.send(message, (error) => error !== null && reject(error));
  });
}
