/** sentence-transformers as a contender: a Python process that answers one JSON line with another. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { Contender, Mix, RoundTiming } from './contender.ts';
import type { PythonPeer } from './python-peer.ts';

/** A GPU is not full before hundreds of texts. */
const batchSizes = {
  cpu: [1, 2, 4, 8, 16, 32],
  cuda: [16, 32, 64, 128, 256, 512, 1024],
};

export interface PythonOptions {
  readonly peer: PythonPeer;
  readonly modelDirectory: string;
  readonly threads: number;
  readonly device: 'cpu' | `cuda:${number}`;
  readonly precision: 'f32' | 'f16';
}

export function openPython({ peer, modelDirectory, threads, device, precision }: PythonOptions): Contender {
  return new Python(
    spawn(peer.interpreter, [peer.script, modelDirectory, String(threads), device, precision], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
    device === 'cpu' ? batchSizes.cpu : batchSizes.cuda,
  );
}

class Python implements Contender {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #batchSizes: readonly number[];
  readonly #ended: Promise<void>;
  /** Calls are made one at a time. */
  #waiting: PromiseWithResolvers<unknown> | undefined;

  constructor(child: ChildProcessByStdio<Writable, Readable, null>, batchSizesToTry: readonly number[]) {
    this.#child = child;
    this.#batchSizes = batchSizesToTry;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { value, error } = JSON.parse(line) as { value?: unknown; error?: string };
      if (error === undefined) this.#waiting?.resolve(value);
      else this.#waiting?.reject(new Error(error));
    });
    this.#ended = new Promise((resolve) => {
      child.once('close', (code) => {
        this.#waiting?.reject(new Error(`the Python process ended with ${code}; its words are above`));
        resolve();
      });
    });
    // A call reports that the process ended, and not that its pipe broke.
    child.stdin.on('error', () => undefined);
  }

  async prepare({ kind, inFlight, texts }: Mix): Promise<string> {
    const batch_sizes = kind === 'query' && inFlight === 1 ? [1] : this.#batchSizes;
    return (await this.#call({ method: 'prepare', texts, batch_sizes })) as string;
  }

  async round(): Promise<RoundTiming> {
    return (await this.#call({ method: 'round' })) as RoundTiming;
  }

  async vectors(count: number): Promise<readonly Float32Array[]> {
    const rows = (await this.#call({ method: 'vectors', count })) as readonly string[];
    return rows.map((text) => new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer));
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }

  async #call(request: object): Promise<unknown> {
    const call = Promise.withResolvers<unknown>();
    this.#waiting = call;
    if (this.#child.exitCode !== null)
      throw new Error(`the Python process ended with ${this.#child.exitCode}`);
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    return call.promise;
  }
}
