/**
 * The server's side of one `EncodeQueries` stream: every query runs by itself, with its own deadline and cancellation. A
 * client that sends without reading is read from no further once `openMax` of its queries are open or unread.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { CallError } from '../protocol/call-error.ts';
import { EncoderFailure } from '../scheduling/encoder-failure.ts';
import {
  type EncodeQueriesRequest,
  type EncodeQueriesResponse,
  type EncodeQueryRequest,
  type EncodeQueryResponse,
  type QueryFailure,
  retryDelayTrailer,
} from '../protocol/wire.ts';

export type QueriesCall = ServerDuplexStream<EncodeQueriesRequest, EncodeQueriesResponse>;

export interface QueryCallsOptions {
  readonly encode: (
    request: EncodeQueryRequest,
    call: { readonly deadlineMs: number; readonly signal: AbortSignal },
  ) => Promise<EncodeQueryResponse>;
  /** The status of a failure. */
  readonly statusOf: (error: unknown) => CallError;
  readonly onEnd: () => void;
}

const openMax = 2048;

export class QueryCalls {
  readonly #call: QueriesCall;
  readonly #options: QueryCallsOptions;
  readonly #open = new Map<number, AbortController>();
  /** Queries whose answer the transport has not taken yet. */
  #unanswered = 0;
  #clientEnded = false;

  constructor(call: QueriesCall, options: QueryCallsOptions) {
    this.#call = call;
    this.#options = options;
    call.on('data', (request: EncodeQueriesRequest) => this.#take(request));
    call.on('end', () => {
      this.#clientEnded = true;
      this.#endWhenDone();
    });
    call.on('cancelled', () => {
      for (const controller of this.#open.values()) controller.abort(callerGone());
      options.onEnd();
    });
    // `cancelled` reports what broke.
    call.on('error', () => undefined);
  }

  /** Tells the client to send no more; the stream ends when it has what it asked for. */
  drain(): void {
    if (!this.#clientEnded) this.#call.write({ number: 0, draining: {} });
  }

  #take({ number, query, cancel, timeoutMs }: EncodeQueriesRequest): void {
    if (cancel) this.#open.get(number)?.abort(callerGone());
    else void this.#answer(number, query, Date.now() + timeoutMs);
  }

  async #answer(number: number, query: EncodeQueriesRequest['query'], deadlineMs: number): Promise<void> {
    this.#unanswered++;
    if (this.#unanswered >= openMax) this.#call.pause();
    const controller = new AbortController();
    this.#open.set(number, controller);
    let response: EncodeQueriesResponse;
    try {
      if (!query) throw new EncoderFailure('invalid', 'the message holds no query');
      const { encode } = this.#options;
      response = { number, reply: await encode(query, { deadlineMs, signal: controller.signal }) };
    } catch (error) {
      response = { number, failure: failureOf(this.#options.statusOf(error)) };
    }
    if (this.#open.get(number) === controller) this.#open.delete(number);
    this.#call.write(response, () => {
      this.#unanswered--;
      if (this.#unanswered < openMax) this.#call.resume();
      this.#endWhenDone();
    });
  }

  #endWhenDone(): void {
    if (!this.#clientEnded || this.#unanswered > 0) return;
    this.#call.end();
    this.#options.onEnd();
  }
}

function failureOf({ code, details, metadata }: CallError): QueryFailure {
  const [delayMs] = metadata.get(retryDelayTrailer);
  return { status: code, message: details, retryDelayMs: Number(delayMs ?? 0) };
}

function callerGone(): EncoderFailure {
  return new EncoderFailure('cancelled', 'the caller has gone');
}
