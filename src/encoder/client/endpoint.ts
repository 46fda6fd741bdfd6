/**
 * One encoder of the pool: its channel, its health, the models that it serves, its open calls.
 *
 * Health is checked at short intervals with a deadline. So a process that hangs while its sockets stay open is detected, like one
 * that is gone. An endpoint that hangs is ejected and its calls are cut, so that their callers try another one. An endpoint that
 * drains (NOT_SERVING) gets no new calls and finishes those that it has. It is admitted again when it is SERVING and has reported
 * its models.
 */
import { type ChannelCredentials, type ClientUnaryCall, type requestCallback, status } from '@grpc/grpc-js';
import { setTimeout as pause } from 'node:timers/promises';
import type { EncoderModel } from '../protocol/contract.ts';
import { Retrial } from './crash-guard.ts';
import { type HealthClient, healthClient } from '../protocol/health.ts';
import { QueryClient } from './query-client.ts';
import { decodeInfo } from './replies.ts';
import {
  EncoderClient,
  type EncodeQueryRequest,
  type EncodeQueryResponse,
  type GetInfoResponse,
  messageBytesMax,
  serviceName,
} from '../protocol/wire.ts';

export interface EndpointOptions {
  readonly address: string;
  /** The name in its certificate, where that is not the host of the address. */
  readonly serverName?: string;
  readonly credentials: ChannelCredentials;
  /** Interval and deadline of health checks. */
  readonly healthIntervalMs: number;
  readonly healthTimeoutMs: number;
  /** Throws when the models contradict earlier reports. Then the endpoint is not admitted. */
  readonly checkModels: (models: readonly EncoderModel[]) => void;
  /** Called when the endpoint is admitted or ejected, and when a retrial ends. */
  readonly onChange: () => void;
  readonly onEvent: (event: EndpointEvent) => void;
}

export interface EndpointEvent {
  readonly event:
    | 'admitted'
    | 'ejected'
    /** DNS names its address no longer. */
    | 'removed'
    /** The lookup of a name failed. */
    | 'unresolved'
    | 'corrupt_reply'
    | 'unencodable_document'
    | 'unencodable_query';
  readonly address: string;
  readonly reason: string;
}

/** A call that was sent. */
export interface OpenCall {
  /** The encoder has answered and does no more work for it. */
  answered(): void;
  end(): void;
}

export interface CallOptions {
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** Starts a unary call. */
export type StartUnary<Response> = (
  rpc: EncoderClient,
  options: { readonly deadline: number },
  callback: requestCallback<Response>,
) => ClientUnaryCall;

export type DocumentStream = ReturnType<EncoderClient['encodeDocuments']>;

/** An encoder counts as hanging after so many checks in a row without an answer. */
const missedChecksMax = 2;
/** Interval of checks while it is ejected: short, so that a restarted encoder is used at once. */
const ejectedIntervalMs = 50;

/** Interval of pings on a connection. A server of grpc-js accepts any. */
const keepaliveMs = 5000;

/** A call was cut because its encoder hangs. As after UNAVAILABLE, it may be tried elsewhere. */
export class EndpointLost extends Error {
  override readonly name = 'EndpointLost';
}

/** The reason of an abort after the caller has left the stream. */
const callLeft = new Error('the call was left');

export class Endpoint {
  readonly address: string;
  readonly retrial = new Retrial();
  readonly #options: EndpointOptions;
  readonly #rpc: EncoderClient;
  readonly #health: HealthClient;
  readonly #closed = new AbortController();
  readonly #queries: QueryClient;
  #cut = new AbortController();
  #poke = new AbortController();
  #models: readonly EncoderModel[] = [];
  /** The process instance that was admitted last. */
  #instance = '';
  #grouped = false;
  #provider = '';
  #admitted = false;
  #retired = false;
  #openCalls = 0;
  #outstandingTokens = 0;
  /** Why it was not admitted at the last check. The same reason is reported once. */
  #refusal: string | undefined;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.address = options.address;
    this.#rpc = new EncoderClient(options.address, options.credentials, {
      'grpc.max_receive_message_length': messageBytesMax,
      'grpc.max_send_message_length': messageBytesMax,
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 100,
      // Its statistics are not read.
      'grpc.enable_channelz': 0,
      // The pool retries, because it knows what was delivered.
      'grpc.enable_retries': 0,
      // A connection whose other end has vanished is given up, and a new one is tried.
      'grpc.keepalive_time_ms': keepaliveMs,
      'grpc.keepalive_timeout_ms': missedChecksMax * options.healthTimeoutMs,
      'grpc.keepalive_permit_without_calls': 1,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.service_config_disable_resolution': 1,
      ...(options.serverName === undefined
        ? {}
        : {
            'grpc.ssl_target_name_override': options.serverName,
            'grpc.default_authority': options.serverName,
          }),
    });
    this.#health = healthClient(options.address, options.credentials, this.#rpc);
    this.#queries = new QueryClient({
      open: () => this.#rpc.encodeQueries(),
      onDraining: () => this.#eject('it is draining', false),
    });
    void this.#watch();
  }

  /** The models that it serves; empty while it is ejected. */
  get models(): readonly EncoderModel[] {
    return this.#admitted ? this.#models : [];
  }

  /** Whether it takes several texts in a message. */
  get grouped(): boolean {
    return this.#grouped;
  }

  /** The execution provider that it reported last: `cpu` or `cuda`. */
  get provider(): string {
    return this.#provider;
  }

  /** Tokens (estimated) of the open calls. */
  get outstandingTokens(): number {
    return this.#outstandingTokens;
  }

  /** Counts a call of about so many tokens as open until its end. */
  begin(tokens: number): OpenCall {
    this.#outstandingTokens += tokens;
    this.#openCalls += 1;
    let answered = false;
    return {
      answered: () => {
        answered = true;
      },
      end: () => {
        this.#outstandingTokens -= tokens;
        this.#openCalls -= 1;
        if (!answered) this.retrial.end();
        this.#closeIfUnused();
      },
    };
  }

  get admitted(): boolean {
    return this.#admitted;
  }

  get retired(): boolean {
    return this.#retired;
  }

  /** Its address is gone from DNS: it gets no new calls. Those that it has may end. */
  retire(): void {
    this.#retired = true;
    this.#tell('removed', 'DNS names its address no longer');
    this.#closeIfUnused();
  }

  #closeIfUnused(): void {
    if (this.#retired && this.#openCalls === 0) this.close();
  }

  /** Rejects with the call's error, `EndpointLost`, or the signal's reason. */
  async unary<Response>(start: StartUnary<Response>, { deadlineMs, signal }: CallOptions): Promise<Response> {
    const ended = AbortSignal.any([signal, this.#cut.signal]);
    ended.throwIfAborted();
    return new Promise<Response>((resolve, reject) => {
      const call = start(this.#rpc, { deadline: deadlineMs }, (error, response) => {
        ended.removeEventListener('abort', abort);
        if (error === null) resolve(response!);
        else reject(error);
      });
      const abort = (): void => {
        reject(ended.reason as Error);
        call.cancel();
      };
      ended.addEventListener('abort', abort, { once: true });
    });
  }

  /** Rejects like `unary`. */
  async query(
    request: EncodeQueryRequest,
    { deadlineMs, signal }: CallOptions,
  ): Promise<EncodeQueryResponse> {
    return this.#queries.query(request, deadlineMs, signal);
  }

  /** Opens a document stream. `ended` aborts with the caller's signal, when the call is cut, and with `leave`. Always call `leave`. */
  documents({ deadlineMs, signal }: CallOptions): {
    readonly stream: DocumentStream;
    readonly ended: AbortSignal;
    readonly leave: () => void;
  } {
    const stream = this.#rpc.encodeDocuments({ deadline: deadlineMs });
    const ended = new AbortController();
    // A combined signal (`AbortSignal.any`) costs as much as five messages.
    const causes = [signal, this.#cut.signal];
    const end = ({ target }: Event): void => ended.abort((target as AbortSignal).reason);
    for (const cause of causes) {
      if (cause.aborted) ended.abort(cause.reason);
      cause.addEventListener('abort', end);
    }
    return {
      stream,
      ended: ended.signal,
      leave: () => {
        for (const cause of causes) cause.removeEventListener('abort', end);
        ended.abort(callLeft);
        // Ends the encoder's work when this side leaves early. It does not affect a call that has ended.
        stream.cancel();
      },
    };
  }

  /** A call found it unavailable, or serving other models. Ejects it and checks it at once. */
  lookAgain(): void {
    this.#eject('a call failed', false);
  }

  close(): void {
    this.#closed.abort();
    this.#admitted = false;
    const reason = new EndpointLost('the pool is closed');
    this.#cut.abort(reason);
    this.#queries.close(reason);
    this.#rpc.close();
  }

  async #watch(): Promise<void> {
    let missed = 0;
    while (!this.#closed.signal.aborted) {
      const outcome = await this.#check();
      missed = outcome === 'silent' ? missed + 1 : 0;
      if (this.#closed.signal.aborted) return;
      if (outcome === 'serving') await this.#admit();
      else if (outcome === 'gone') this.#eject('it is gone or not serving', false);
      else if (missed >= missedChecksMax) this.#eject('it does not answer health checks', true);
      this.#poke = new AbortController();
      const interval = this.#admitted ? this.#options.healthIntervalMs : ejectedIntervalMs;
      const woken = AbortSignal.any([this.#closed.signal, this.#poke.signal]);
      await pause(interval, undefined, { signal: woken, ref: false }).catch(() => undefined);
    }
  }

  async #check(): Promise<'serving' | 'gone' | 'silent'> {
    const deadline = Date.now() + this.#options.healthTimeoutMs;
    return new Promise((resolve) => {
      this.#health.check({ service: serviceName }, { deadline }, (error, response) => {
        if (error === null) resolve(response?.status === 'SERVING' ? 'serving' : 'gone');
        else resolve(error.code === status.DEADLINE_EXCEEDED ? 'silent' : 'gone');
      });
    });
  }

  async #admit(): Promise<void> {
    if (this.#admitted) return;
    const deadlineMs = Date.now() + this.#options.healthTimeoutMs;
    this.#cut = new AbortController();
    try {
      const info = await this.unary<GetInfoResponse>(
        (rpc, limits, answer) => rpc.getInfo({}, limits, answer),
        {
          deadlineMs,
          signal: this.#closed.signal,
        },
      );
      const models = decodeInfo(info);
      this.#options.checkModels(models);
      this.#models = models;
      this.#noteInstance(info.instance);
      this.#grouped = info.grouped;
      this.#provider = info.provider;
      this.#admitted = true;
      this.#refusal = undefined;
      this.#tell('admitted', this.#models.map(({ name, version }) => `${name}/${version}`).join(' '));
      this.#options.onChange();
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#refusal) this.#tell('ejected', message);
      this.#refusal = message;
    }
  }

  /** A process that is known to be new has run nothing yet, so a retrial can begin. */
  #noteInstance(instance: string): void {
    if (this.#instance !== '' && instance !== '' && this.#instance !== instance) {
      this.retrial.begin(this.#options.onChange);
    }
    this.#instance = instance;
  }

  #eject(reason: string, cut: boolean): void {
    if (cut) {
      const lost = new EndpointLost(reason);
      this.#cut.abort(lost);
      this.#queries.close(lost);
    }
    this.#poke.abort();
    if (!this.#admitted) return;
    this.#admitted = false;
    this.#tell('ejected', reason);
    this.#options.onChange();
  }

  #tell(event: EndpointEvent['event'], reason: string): void {
    this.#options.onEvent({ event, address: this.address, reason });
  }
}
