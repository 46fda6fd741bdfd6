/**
 * The catalog's end of one of its threads: typed requests, and replies by number. The thread keeps the process alive only
 * while a request is open.
 *
 * When a thread dies, the outcome of its open requests is unknown. From then on the client answers `service_unavailable`, and
 * the next start of the process reads the truth from the file. A thread that could not open its file has begun no request, so
 * the next request starts it again.
 */
import { Worker } from 'node:worker_threads';
import { fromFailure, ServiceError } from '../../../errors.ts';
import type { ThreadEvent, ThreadMessage, ThreadReply } from './thread-protocol.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- the parameters of an operation are inferred from its name
export type Operations = Readonly<Record<string, (...input: any[]) => unknown>>;

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export interface ThreadOptions {
  /** File name beside this one, without its extension. */
  readonly entry: 'writer-thread' | 'reader-thread' | 'checkpoint-thread';
  readonly data: unknown;
  readonly onBackgroundFailure: (error: Error) => void;
  readonly onDamagedIndex?: (indexId: string, error: Error) => void;
}

/** `Served`: the operations of the thread, by name. */
export class ThreadClient<Served extends Operations> {
  readonly #options: ThreadOptions;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #hasOpened = false;
  #lastNumber = 0;
  #dead: ServiceError | undefined;
  #closed: Promise<void> | undefined;

  /** The thread starts with the first request, or by `start`. */
  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /** Starts the thread now. That takes a tenth of a second, for which the first request would wait otherwise. */
  start(): void {
    if (this.#closed === undefined && this.#dead === undefined) this.#worker ??= this.#start();
  }

  request<Name extends keyof Served & string>(
    operation: Name,
    ...input: Parameters<Served[Name]>
  ): Promise<ReturnType<Served[Name]>> {
    if (this.#closed !== undefined) return Promise.reject(new Error('this is a bug: the catalog is closed'));
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const worker = (this.#worker ??= this.#start());
    return new Promise((resolve, reject) => {
      const number = ++this.#lastNumber;
      post(worker, { kind: 'request', number, operation, input });
      if (this.#pending.size === 0) worker.ref();
      this.#pending.set(number, { resolve: resolve as (value: unknown) => void, reject });
    });
  }

  /** Methods that request the operations of these names. */
  methods<Name extends keyof Served & string>(...names: readonly Name[]) {
    const entries = names.map((name) => [
      name,
      (...input: Parameters<Served[Name]>) => this.request(name, ...input),
    ]);
    return Object.fromEntries(entries) as {
      [Each in Name]: (...input: Parameters<Served[Each]>) => Promise<ReturnType<Served[Each]>>;
    };
  }

  /** Waits for the open requests, then ends the thread. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  #start(): Worker {
    // TypeScript in the repository, JavaScript in the published package.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./${this.#options.entry}.${extension}`, import.meta.url), {
      workerData: this.#options.data,
    });
    worker.unref();
    worker.on('message', (event: ThreadEvent) => this.#receive(event));
    worker.on('error', (error) => this.#die(worker, error));
    worker.on('exit', () => this.#die(worker, new Error('the thread has ended')));
    return worker;
  }

  async #finish(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined || this.#dead !== undefined) return;
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    worker.ref();
    post(worker, { kind: 'finish' });
    await exited;
  }

  #receive(event: ThreadEvent): void {
    if (event.kind === 'opened') {
      this.#hasOpened = true;
      return;
    }
    if (event.kind === 'background_failure') {
      this.#options.onBackgroundFailure(fromFailure(event.failure));
      return;
    }
    if (event.kind === 'damaged_index') {
      this.#options.onDamagedIndex?.(event.indexId, fromFailure(event.failure));
      return;
    }
    for (const reply of event.replies) this.#settle(reply);
    if (this.#pending.size === 0 && this.#closed === undefined) this.#worker?.unref();
  }

  #settle(reply: ThreadReply): void {
    const pending = this.#pending.get(reply.number);
    this.#pending.delete(reply.number);
    if (reply.ok) pending?.resolve(reply.value);
    else pending?.reject(fromFailure(reply.failure));
  }

  #die(worker: Worker, cause: unknown): void {
    // A death comes as an error and as an exit. By the second of them the next thread may have started.
    if (worker !== this.#worker || this.#dead !== undefined) return;
    const what = this.#hasOpened
      ? 'a thread of the catalog died; restart the service'
      : 'a thread of the catalog could not open its file';
    const failure = new ServiceError('service_unavailable', what, { retryAfterSeconds: 5, cause });
    if (this.#hasOpened) this.#dead = failure;
    else this.#worker = undefined;
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
  }
}

function post(worker: Worker, message: ThreadMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  worker.postMessage(message);
}
