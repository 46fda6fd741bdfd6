/** A contender in a process of its own, so that no side's threads or memory disturb another side. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Contender, RoundTiming } from './contender.ts';
import type { Device } from '../lib/model/device.ts';

export interface PeerRequest {
  readonly id: number;
  readonly contender: string;
  readonly method: 'prepare' | 'round' | 'vectors';
  readonly argument: unknown;
}

export interface PeerReply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

export interface PeerOptions {
  readonly library: 'onnxruntime' | 'transformers' | 'maxsimd';
  readonly modelDirectory: string;
  readonly peersDirectory: string;
  readonly device: Device;
  /** The output of `models/export.py`, for the library `transformers`. */
  readonly exportDirectory?: string | undefined;
  /** An encoder process that runs already, for the library `maxsimd`. */
  readonly address?: string | undefined;
}

/** Starts the library's process; its contenders fail at their first call when it cannot load. */
export function openPeers<Name extends string>(
  names: readonly Name[],
  options: PeerOptions,
): Readonly<Record<Name, Contender>> {
  const { library, modelDirectory, peersDirectory, device, exportDirectory = '', address = '' } = options;
  const { provider, index, threads } = device;
  const child = fork(
    fileURLToPath(new URL('./peer-process/peer-process.ts', import.meta.url)),
    [
      library,
      modelDirectory,
      peersDirectory,
      provider,
      String(index),
      String(threads),
      exportDirectory,
      address,
    ],
    // Structured clones carry typed arrays.
    { serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  );
  const calls = new Calls(child);
  const contenders = names.map((name): [Name, Contender] => [
    name,
    {
      prepare: async (mix) => calls.call(name, 'prepare', mix) as Promise<string>,
      round: async () => calls.call(name, 'round', undefined) as Promise<RoundTiming>,
      vectors: async (texts) =>
        calls.call(name, 'vectors', texts) as Promise<readonly Float32Array[] | undefined>,
      close: async () => {
        if (child.connected) child.disconnect();
        return calls.ended;
      },
    },
  ]);
  return Object.fromEntries(contenders) as Record<Name, Contender>;
}

class Calls {
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #next = 1;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (reply: PeerReply) => {
      const call = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (reply.error === undefined) call?.resolve(reply.value);
      else call?.reject(new Error(reply.error));
    });
    this.ended = new Promise((resolve) => {
      child.once('exit', (code) => {
        for (const call of this.#waiting.values()) call.reject(new Error(`the peer exited with ${code}`));
        resolve();
      });
    });
  }

  async call(contender: string, method: PeerRequest['method'], argument: unknown): Promise<unknown> {
    if (!this.#child.connected) throw new Error('the peer has exited');
    const id = this.#next++;
    const call = Promise.withResolvers<unknown>();
    this.#waiting.set(id, call);
    this.#child.send({ id, contender, method, argument } satisfies PeerRequest);
    return call.promise;
  }
}
