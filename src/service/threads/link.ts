/**
 * Calls between two threads, in both directions, by name and with plain data. Messages of one turn of the event loop go as one,
 * because each message costs a wake-up of the other thread.
 */
import type { MessagePort, Worker } from 'node:worker_threads';
import { assertInvariant, fromFailure, toFailure, type Failure } from '../../errors.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- the parameters follow from the name
export type Handlers = Readonly<Record<string, (...input: any[]) => unknown>>;

/** `number`: of the reply; 0 = none is wanted. */
type Call = readonly [number: number, name: string, input: readonly unknown[]];
type Reply = readonly [number: number, value: unknown, failure?: Failure];

interface Batch {
  readonly calls: readonly Call[];
  readonly replies: readonly Reply[];
}

/** The way to the other thread, at either end. */
export type Port = Pick<Worker, 'postMessage' | 'on'> | Pick<MessagePort, 'postMessage' | 'on'>;

export class Link {
  readonly #port: Port;
  readonly #handlers: Handlers;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #calls: Call[] = [];
  #replies: Reply[] = [];
  #sends = false;
  #lastNumber = 0;
  #closed: Error | undefined;

  /** Takes the messages of the port. `handlers` answer the other thread. */
  constructor(port: Port, handlers: Handlers) {
    this.#port = port;
    this.#handlers = handlers;
    port.on('message', ({ calls, replies }: Batch) => {
      for (const call of calls) this.#answer(call);
      for (const reply of replies) this.#settle(reply);
    });
  }

  call(name: string, ...input: readonly unknown[]): Promise<unknown> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    const settled = Promise.withResolvers<unknown>();
    const number = ++this.#lastNumber;
    this.#pending.set(number, settled);
    this.#calls.push([number, name, input]);
    this.#sendSoon();
    return settled.promise;
  }

  /** Calls without waiting for an answer. */
  tell(name: string, ...input: readonly unknown[]): void {
    this.#calls.push([0, name, input]);
    this.#sendSoon();
  }

  /** The other thread has ended: open calls and later ones fail. */
  close(reason: Error): void {
    this.#closed ??= reason;
    for (const { reject } of this.#pending.values()) reject(this.#closed);
    this.#pending.clear();
  }

  #sendSoon(): void {
    if (this.#sends) return;
    this.#sends = true;
    setImmediate(() => {
      this.#sends = false;
      const batch: Batch = { calls: this.#calls, replies: this.#replies };
      this.#calls = [];
      this.#replies = [];
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      this.#port.postMessage(batch);
    });
  }

  #answer([number, name, input]: Call): void {
    const handler = this.#handlers[name];
    assertInvariant(handler !== undefined, `the thread knows no ${name}`);
    if (number === 0) handler(...input);
    else void this.#reply(number, handler, input);
  }

  async #reply(number: number, handler: Handlers[string], input: readonly unknown[]): Promise<void> {
    const reply = await replyOf(number, handler, input);
    // Batches have left meanwhile.
    this.#replies.push(reply);
    this.#sendSoon();
  }

  #settle([number, value, failure]: Reply): void {
    const settled = this.#pending.get(number);
    this.#pending.delete(number);
    if (failure === undefined) settled?.resolve(value);
    else settled?.reject(fromFailure(failure));
  }
}

async function replyOf(number: number, handler: Handlers[string], input: readonly unknown[]): Promise<Reply> {
  try {
    return [number, await handler(...input)];
  } catch (error) {
    return [number, undefined, toFailure(error)];
  }
}
