/**
 * The server's side of one `EncodeQueries` stream. Every query has its own deadline and cancellation. When `openMax` queries of a
 * client are open or unread, no more are read from it.
 */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { CallError } from '../protocol/call-error.ts';
import type { CallLimits, EncodeRequest, EncoderCore } from '../scheduling/encoder-core.ts';
import { EncoderFailure, refusalMessage, TextRefused } from '../scheduling/encoder-failure.ts';
import { ItemWriter } from '../protocol/item-writer.ts';
import {
  type AnswerItem,
  bytesOf,
  type EncodeQueriesRequest,
  type EncodeQueriesResponse,
  type EncodeQueryRequest,
  type EncodeQueryResponse,
  type QueryFailure,
  type QueryItem,
  requestBounds,
  retryDelayTrailer,
} from '../protocol/wire.ts';

export type QueriesCall = ServerDuplexStream<EncodeQueriesRequest, EncodeQueriesResponse>;

export interface QueryServerOptions {
  readonly core: EncoderCore;
  /** Makes the request to the core. Throws an `EncoderFailure` when the query names no model. */
  readonly targeted: (query: EncodeQueryRequest, limits: CallLimits) => EncodeRequest;
  /** Converts a failure to a status. */
  readonly statusOf: (error: unknown) => CallError;
  /** Called for each query that cannot be encoded. */
  readonly onRefusal: (problem: Error) => void;
  readonly onEnd: () => void;
}

const openMax = 2048;

const none = new Uint32Array();

const refusedQueryResponse: EncodeQueryResponse = {
  inputTokens: 0,
  rows: 0,
  vectors: Buffer.alloc(0),
  offsets: Buffer.alloc(0),
  timings: null,
  problem: refusalMessage,
  starts: Buffer.alloc(0),
  ends: Buffer.alloc(0),
};

export class QueryServer {
  readonly #call: QueriesCall;
  readonly #writer: ItemWriter<AnswerItem>;
  readonly #options: QueryServerOptions;
  readonly #open = new Map<number, AbortController>();
  /** Queries whose answers the transport has not taken yet. */
  #unanswered = 0;
  #clientEnded = false;

  constructor(call: QueriesCall, options: QueryServerOptions) {
    this.#call = call;
    this.#writer = new ItemWriter(call);
    this.#options = options;
    call.on('data', ({ items }: EncodeQueriesRequest) => {
      for (const item of items) this.#take(item);
    });
    call.on('end', () => {
      this.#clientEnded = true;
      this.#endWhenDone();
    });
    call.on('cancelled', () => {
      for (const controller of this.#open.values()) controller.abort(callerGone());
      options.onEnd();
    });
    // A broken stream is also cancelled.
    call.on('error', () => undefined);
  }

  /** Asks the client to send no more queries. The stream ends when all are answered. */
  drain(): void {
    if (!this.#clientEnded) this.#writer.write({ number: 0, draining: {} });
  }

  #take({ number, query, cancel, timeoutMs }: QueryItem): void {
    if (cancel) this.#open.get(number)?.abort(callerGone());
    else void this.#answer(number, query, Date.now() + timeoutMs);
  }

  async #answer(number: number, query: QueryItem['query'], deadlineMs: number): Promise<void> {
    this.#unanswered++;
    if (this.#unanswered >= openMax) this.#call.pause();
    const controller = new AbortController();
    this.#open.set(number, controller);
    let answer: AnswerItem;
    try {
      if (!query) throw new EncoderFailure('invalid', 'the message holds no query');
      answer = { number, reply: await this.#encode(query, { deadlineMs, signal: controller.signal }) };
    } catch (error) {
      answer = { number, failure: failureOf(this.#options.statusOf(error)) };
    }
    if (this.#open.get(number) === controller) this.#open.delete(number);
    this.#writer.write(answer, () => {
      this.#unanswered--;
      if (this.#unanswered < openMax) this.#call.resume();
      this.#endWhenDone();
    });
  }

  async #encode(request: EncodeQueryRequest, limits: CallLimits): Promise<EncodeQueryResponse> {
    const { core, targeted, onRefusal } = this.#options;
    if (Buffer.byteLength(request.text) > requestBounds.queryBytes) {
      throw new EncoderFailure('invalid', `the query exceeds ${requestBounds.queryBytes} bytes`);
    }
    let query;
    try {
      const { located } = request;
      query = await core.encodeQuery(request.text, { ...targeted(request, limits), located });
    } catch (error) {
      if (!(error instanceof TextRefused)) throw error;
      onRefusal(error);
      return refusedQueryResponse;
    }
    return {
      inputTokens: query.inputTokens,
      rows: query.offsets.length,
      vectors: bytesOf(query.vectors),
      offsets: bytesOf(query.offsets),
      timings: query.timings,
      problem: '',
      starts: bytesOf(query.spans?.starts ?? none),
      ends: bytesOf(query.spans?.ends ?? none),
    };
  }

  #endWhenDone(): void {
    if (!this.#clientEnded || this.#unanswered > 0) return;
    this.#writer.end();
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
