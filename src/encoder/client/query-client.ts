/**
 * The client's side of `EncodeQueries`: queries to one encoder over one stream that stays open. A call for each query would take
 * about a millisecond for headers, timers and status on both sides. A message on an open stream does not.
 *
 * The first query opens the stream. After it has broken, the next query opens a new one. Queries that were open on it fail with
 * its error, and their callers may try again. Each query has its own deadline and cancellation, which work even when the encoder
 * is silent.
 */
import { status } from '@grpc/grpc-js';
import { callError } from '../protocol/call-error.ts';
import { ItemWriter } from '../protocol/item-writer.ts';
import type {
  AnswerItem,
  EncodeQueriesResponse,
  EncoderClient,
  EncodeQueryRequest,
  EncodeQueryResponse,
  QueryItem,
} from '../protocol/wire.ts';

type QueryDuplex = ReturnType<EncoderClient['encodeQueries']>;

export interface QueryClientOptions {
  readonly open: () => QueryDuplex;
  /** The encoder takes no more queries. */
  readonly onDraining: () => void;
}

/** The longest delay of a timer. The server alone keeps a later deadline. */
const timeoutMsMax = 2 ** 31 - 1;
const numbersMax = 2 ** 32 - 1;

export class QueryClient {
  readonly #options: QueryClientOptions;
  #current: OpenStream | undefined;

  constructor(options: QueryClientOptions) {
    this.#options = options;
  }

  /** Rejects with a gRPC error, or the reason of `signal` or of `close`. */
  async query(
    request: EncodeQueryRequest,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<EncodeQueryResponse> {
    signal.throwIfAborted();
    if (this.#current?.takesQueries !== true) {
      this.#current = new OpenStream(this.#options.open(), this.#options.onDraining);
    }
    return this.#current.query(request, deadlineMs, signal);
  }

  /** Open queries fail with the reason. */
  close(reason: Error): void {
    this.#current?.close(reason);
    this.#current = undefined;
  }
}

class OpenStream {
  takesQueries = true;
  readonly #stream: QueryDuplex;
  readonly #writer: ItemWriter<QueryItem>;
  readonly #open = new Map<number, PromiseWithResolvers<EncodeQueryResponse>>();
  #lastNumber = 0;

  constructor(stream: QueryDuplex, onDraining: () => void) {
    this.#stream = stream;
    this.#writer = new ItemWriter<QueryItem>(stream);
    stream.on('data', ({ items }: EncodeQueriesResponse) => {
      for (const item of items) {
        if (item.draining) {
          this.#leave();
          onDraining();
        } else this.#settle(item);
      }
    });
    stream.on('error', (error) => this.#lost(error));
    stream.on('end', () => this.#lost(callError(status.UNAVAILABLE, 'the encoder ended the stream')));
  }

  async query(
    request: EncodeQueryRequest,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<EncodeQueryResponse> {
    const number = (this.#lastNumber = (this.#lastNumber % numbersMax) + 1);
    const timeoutMs = Math.max(0, deadlineMs - Date.now());
    const settled = Promise.withResolvers<EncodeQueryResponse>();
    const giveUp = (error: Error): void => {
      if (this.takesQueries) this.#writer.write({ number, cancel: {}, timeoutMs: 0 });
      settled.reject(error);
    };
    const abort = (): void => giveUp(signal.reason as Error);
    const late = (): void => giveUp(callError(status.DEADLINE_EXCEEDED, 'the deadline passed'));
    const timer = timeoutMs > timeoutMsMax ? undefined : setTimeout(late, timeoutMs);
    signal.addEventListener('abort', abort, { once: true });
    this.#open.set(number, settled);
    this.#writer.write({ number, query: request, timeoutMs });
    try {
      return await settled.promise;
    } finally {
      this.#open.delete(number);
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  close(reason: Error): void {
    this.#lost(reason);
    this.#stream.cancel();
  }

  #settle({ number, reply, failure }: AnswerItem): void {
    const query = this.#open.get(number);
    // The query was given up.
    if (query === undefined) return;
    if (reply) query.resolve(reply);
    else if (failure) {
      const { message, retryDelayMs } = failure;
      const name = status[failure.status] as keyof typeof status | undefined;
      const code = name === undefined ? status.UNKNOWN : status[name];
      query.reject(callError(code, message, retryDelayMs === 0 ? undefined : retryDelayMs));
    } else query.reject(callError(status.INTERNAL, 'the answer of the encoder is empty'));
  }

  #leave(): void {
    if (!this.takesQueries) return;
    this.takesQueries = false;
    this.#writer.end();
  }

  #lost(error: Error): void {
    this.takesQueries = false;
    for (const { reject } of this.#open.values()) reject(error);
  }
}
