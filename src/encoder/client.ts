/**
 * The encoder pool of the api process: several encoders behind the `Encoder` contract.
 *
 * A call goes to the encoder with the fewest tokens outstanding that serves its model version. What is safe is tried again
 * within the deadline: a query whose encoder went away, and of a document call only those documents that were
 * not given out yet, so none comes twice. When no encoder is up the call waits a moment for one to heal. A text
 * that ends one encoder process after the other is found out and refused (see `crash-suspects.ts`).
 */
import { ChannelCredentials, status } from '@grpc/grpc-js';
import { ServiceError } from '../errors.ts';
import { type CallError, isCallError } from './call-error.ts';
import type {
  EncodedDocument,
  EncodedQuery,
  EncodeDocumentsOptions,
  EncodeOptions,
  Encoder,
  EncoderModel,
  EncoderStatistics,
} from './contract.ts';
import { CrashSuspects, type Loss, SuspectQuery, Turns } from './crash-suspects.ts';
import { type Attempt, encodeOnce, type Unfinished } from './document-call.ts';
import { Endpoint, type EndpointEvent, EndpointLost } from './endpoint.ts';
import { CorruptReply, decodeCounts, decodeQuery, refusedDocument, refusedQuery } from './replies.ts';
import {
  type CountTokensResponse,
  type GetStatisticsResponse,
  type ModelReference,
  retryDelayTrailer,
} from './wire.ts';

export interface EncoderPoolOptions {
  /** `unix:/path` or `host:port`. */
  readonly addresses: readonly string[];
  /** PEM; without it connections are plain. Key and certificate make TLS mutual. */
  readonly tls?: { readonly ca: Buffer; readonly certificate?: Buffer; readonly key?: Buffer };
  readonly onEvent?: (event: EndpointEvent) => void;
  /** How long a call waits for an encoder to come (back), and how many may wait at a time. */
  readonly healWaitMs?: number;
  readonly waitingMax?: number;
  readonly healthIntervalMs?: number;
  readonly healthTimeoutMs?: number;
}

const defaults = { healWaitMs: 5000, waitingMax: 256, healthIntervalMs: 500, healthTimeoutMs: 1500 };

const statisticsMsMax = 1000;

/** Tries of one call in all. */
const attemptsMax = 5;

const fatalMessage = 'the encoder ends when it runs this text';

/** About what a text costs, before it is tokenised. */
const charactersPerToken = 4;

export function createEncoderPool(options: EncoderPoolOptions): Encoder {
  return new EncoderPool(options);
}

class EncoderPool implements Encoder {
  readonly #endpoints: readonly Endpoint[];
  readonly #healWaitMs: number;
  readonly #waitingMax: number;
  readonly #onEvent: (event: EndpointEvent) => void;
  /** Every version that was ever served, as it was told first. */
  readonly #known = new Map<string, EncoderModel>();
  readonly #waiting = new Set<() => void>();
  /** Texts that may end an encoder run one at a time. */
  readonly #suspectTurns = new Turns();
  #closed = false;

  constructor(options: EncoderPoolOptions) {
    this.#healWaitMs = options.healWaitMs ?? defaults.healWaitMs;
    this.#waitingMax = options.waitingMax ?? defaults.waitingMax;
    this.#onEvent = options.onEvent ?? (() => undefined);
    const { tls } = options;
    const credentials =
      tls === undefined
        ? ChannelCredentials.createInsecure()
        : ChannelCredentials.createSsl(tls.ca, tls.key ?? null, tls.certificate ?? null);
    this.#endpoints = options.addresses.map(
      (address) =>
        new Endpoint({
          address,
          credentials,
          healthIntervalMs: options.healthIntervalMs ?? defaults.healthIntervalMs,
          healthTimeoutMs: options.healthTimeoutMs ?? defaults.healthTimeoutMs,
          checkModels: (served) => this.#checkModels(served),
          onChange: () => this.#changed(),
          onEvent: this.#onEvent,
        }),
    );
  }

  models(): readonly EncoderModel[] {
    const models = new Map<string, EncoderModel>();
    for (const endpoint of this.#endpoints) {
      for (const model of endpoint.models) models.set(`${model.name}/${model.version}`, model);
    }
    return [...models.values()];
  }

  ready(): boolean {
    return this.#endpoints.some((endpoint) => endpoint.models.length > 0);
  }

  hasServed(name: string): boolean {
    return [...this.#known.values()].some((model) => model.name === name);
  }

  async awaitModel(
    { name, version }: { readonly name: string; readonly version?: string | undefined },
    { deadlineMs, signal }: Pick<EncodeOptions, 'deadlineMs' | 'signal'>,
  ): Promise<EncoderModel | undefined> {
    const waitUntilMs = Math.min(Date.now() + this.#healWaitMs, deadlineMs);
    for (;;) {
      const model = this.models().find(
        (served) => served.name === name && (version ?? served.version) === served.version,
      );
      if (model !== undefined || this.#closed || !(await this.#change(waitUntilMs, signal))) return model;
      signal.throwIfAborted();
    }
  }

  async countTokens(texts: readonly string[], options: EncodeOptions): Promise<readonly number[]> {
    const request = { ...target(options), texts: texts.map((text) => text.toWellFormed()) };
    return this.#tried(options, tokensOf(texts), async (endpoint) => {
      const reply = await endpoint.unary<CountTokensResponse>('countTokens', request, options);
      return [...decodeCounts(reply.tokenCounts, texts.length)];
    });
  }

  async encodeQuery(text: string, options: EncodeOptions): Promise<EncodedQuery> {
    const request = { ...target(options), text: text.toWellFormed() };
    const tries = new Tries(options);
    const suspect = new SuspectQuery();
    for (;;) {
      const endTurn = suspect.alone ? await this.#suspectTurn(options) : undefined;
      try {
        const outcome = await this.#tryOnce(options, tries, tokensOf([text]), async (endpoint, model) =>
          decodeQuery(await endpoint.query(request, options), model.dim),
        );
        if ('result' in outcome) return outcome.result;
        const { loss, wasAlone } = outcome;
        suspect.lost(loss, wasAlone || endTurn !== undefined);
        for (const accusation of suspect.accusations) await this.#becomesReplaced(accusation, options);
        if (suspect.guilty) {
          this.#onEvent({ event: 'fatal_query', address: loss.address, reason: fatalMessage });
          return refusedQuery(fatalMessage);
        }
        // Once an encoder is there, it mostly is known what became of this one.
        await this.#pick(options, tries);
      } finally {
        endTurn?.();
      }
    }
  }

  async *encodeDocuments(
    texts: readonly string[],
    options: EncodeDocumentsOptions,
  ): AsyncGenerator<EncodedDocument, void, undefined> {
    const unfinished: Unfinished = {
      texts: new Map(texts.entries()),
      inputTokens: undefined,
    };
    const tries = new Tries(options);
    const suspects = new CrashSuspects();
    while (unfinished.texts.size > 0) {
      // Once an encoder is there, it mostly is known what became of the one before.
      await this.#pick(options, tries);
      const { alone } = suspects;
      const positions = [...unfinished.texts.keys()].slice(0, alone ? 1 : undefined);
      const endTurn = alone ? await this.#suspectTurn(options) : () => undefined;
      try {
        const loss = yield* this.#attempt(positions, { unfinished, tries, options });
        if (loss === undefined) continue;
        if (!alone) {
          suspects.lostTogether(loss);
          continue;
        }
        const [position] = positions as [number];
        if (!(await this.#becomesReplaced(loss, options)) || !suspects.endedAlone(position)) continue;
        this.#onEvent({ event: 'fatal_document', address: loss.address, reason: fatalMessage });
        tries.forgive();
        unfinished.texts.delete(position);
        const inputTokens = unfinished.inputTokens![position]!;
        yield refusedDocument({ documentIndex: position, inputTokens, problem: fatalMessage });
      } finally {
        endTurn();
      }
    }
  }

  /** Sends documents to one encoder; tells when it was lost after it had begun to run them. */
  async *#attempt(
    positions: readonly number[],
    {
      unfinished,
      tries,
      options,
    }: { readonly unfinished: Unfinished; readonly tries: Tries; readonly options: EncodeDocumentsOptions },
  ): AsyncGenerator<EncodedDocument, Loss | undefined, undefined> {
    const { endpoint, model } = await this.#pick(options, tries);
    const loss = lossOf(endpoint);
    const attempt: Attempt = { positions, started: false };
    const call = endpoint.begin(tokensOf(positions.map((position) => unfinished.texts.get(position)!)));
    try {
      yield* encodeOnce(endpoint, model, { unfinished, attempt, options });
      return undefined;
    } catch (error) {
      this.#failed(endpoint, error, tries, options);
    } finally {
      call.end();
    }
    return attempt.started ? loss : undefined;
  }

  async #suspectTurn({ deadlineMs, signal }: EncodeOptions): Promise<() => void> {
    const late = AbortSignal.timeout(Math.max(0, deadlineMs - Date.now()));
    try {
      return await this.#suspectTurns.take(AbortSignal.any([signal, late]));
    } catch (error) {
      signal.throwIfAborted();
      throw unavailable('the deadline passed while encoding', { cause: error });
    }
  }

  /** Waits for it a moment. */
  async #becomesReplaced(loss: Loss, { deadlineMs, signal }: EncodeOptions): Promise<boolean> {
    const waitUntilMs = Math.min(Date.now() + this.#healWaitMs, deadlineMs);
    while (!loss.isReplaced() && (await this.#change(waitUntilMs, signal))) signal.throwIfAborted();
    return loss.isReplaced();
  }

  async statistics(): Promise<readonly EncoderStatistics[]> {
    const told = this.#endpoints
      .filter(({ admitted }) => admitted)
      .map(async (endpoint) => {
        const limits = { deadlineMs: Date.now() + statisticsMsMax, signal: new AbortController().signal };
        const statistics = await endpoint.unary<GetStatisticsResponse>('getStatistics', {}, limits);
        return { ...statistics, address: endpoint.address };
      });
    return (await Promise.allSettled(told)).flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value] : [],
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const endpoint of this.#endpoints) endpoint.close();
    this.#changed();
  }

  async #tried<T>(
    options: EncodeOptions,
    tokens: number,
    attempt: (endpoint: Endpoint, model: EncoderModel) => Promise<T>,
  ): Promise<T> {
    const tries = new Tries(options);
    for (;;) {
      const outcome = await this.#tryOnce(options, tries, tokens, attempt);
      if ('result' in outcome) return outcome.result;
    }
  }

  /** The result, or how the encoder was lost; throws when there is no use in another try. */
  async #tryOnce<T>(
    options: EncodeOptions,
    tries: Tries,
    tokens: number,
    attempt: (endpoint: Endpoint, model: EncoderModel) => Promise<T>,
  ): Promise<{ readonly result: T } | { readonly loss: Loss; readonly wasAlone: boolean }> {
    const { endpoint, model } = await this.#pick(options, tries);
    const loss = lossOf(endpoint);
    const call = endpoint.begin(tokens);
    try {
      return { result: await attempt(endpoint, model) };
    } catch (error) {
      this.#failed(endpoint, error, tries, options);
      return { loss, wasAlone: call.wasAlone() };
    } finally {
      call.end();
    }
  }

  /** The least loaded encoder that serves the version and did not refuse this call; waits a moment for one. */
  async #pick(
    options: EncodeOptions,
    tries: Tries,
  ): Promise<{ readonly endpoint: Endpoint; readonly model: EncoderModel }> {
    const waitUntilMs = Math.min(Date.now() + this.#healWaitMs, options.deadlineMs);
    for (;;) {
      options.signal.throwIfAborted();
      tries.assertLeft();
      if (this.#closed) throw unavailable('the encoder pool is closed');
      let best: Endpoint | undefined;
      for (const endpoint of this.#endpoints) {
        if (!endpoint.serves(options.model, options.modelVersion) || tries.refusedBy.has(endpoint)) continue;
        if (best === undefined || endpoint.outstandingTokens < best.outstandingTokens) best = endpoint;
      }
      const model = best?.models.find(
        ({ name, version }) => name === options.model && version === options.modelVersion,
      );
      if (best !== undefined && model !== undefined) return { endpoint: best, model };
      if (tries.refusal !== undefined) throw tries.refusal;
      if (!(await this.#change(waitUntilMs, options.signal))) {
        throw unavailable(
          `no encoder serves model ${options.model} version ${options.modelVersion} at the moment`,
        );
      }
    }
  }

  /** Decides what a failed attempt means: returns when the call may be tried again, throws otherwise. */
  #failed(endpoint: Endpoint, error: unknown, tries: Tries, options: EncodeOptions): void {
    options.signal.throwIfAborted();
    if (error instanceof ServiceError) throw error;
    if (error instanceof CorruptReply) {
      this.#onEvent({ event: 'corrupt_reply', address: endpoint.address, reason: error.message });
      throw unavailable('the encoder gave a corrupt reply', { cause: error });
    }
    if (error instanceof EndpointLost) {
      tries.count(error);
      return;
    }
    if (!isCallError(error)) throw error;
    switch (error.code) {
      case status.UNAVAILABLE:
        endpoint.suspect();
        tries.count(error);
        return;
      case status.RESOURCE_EXHAUSTED: {
        tries.refused(
          endpoint,
          unavailable('the encoders are busy', { cause: error, seconds: delaySeconds(error) }),
        );
        return;
      }
      case status.FAILED_PRECONDITION: {
        const { model, modelVersion } = options;
        const message = `the encoder does not serve model ${model} version ${modelVersion}`;
        endpoint.suspect();
        tries.refused(endpoint, unavailable(message, { cause: error }));
        return;
      }
      case status.INVALID_ARGUMENT:
        throw new ServiceError('validation_error', error.details, { cause: error });
      case status.DEADLINE_EXCEEDED:
        throw unavailable('the deadline passed while encoding', { cause: error });
      default:
        throw unavailable('the encoder failed', { cause: error });
    }
  }

  /**
   * Waits until an encoder comes or goes, the time is over or the signal aborts; false at once when there is nothing
   * to wait for: every encoder is in use, or too many wait already.
   */
  async #change(untilMs: number, signal: AbortSignal): Promise<boolean> {
    const leftMs = untilMs - Date.now();
    const allAdmitted = this.#endpoints.length > 0 && this.#endpoints.every(({ admitted }) => admitted);
    if (leftMs <= 0 || allAdmitted || this.#waiting.size >= this.#waitingMax) return false;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, leftMs);
      signal.addEventListener('abort', done, { once: true });
      this.#waiting.add(done);
    });
    return true;
  }

  /** A version is immutable: an encoder that says something else of it than the first one did is not believed. */
  #checkModels(served: readonly EncoderModel[]): void {
    for (const model of served) {
      const name = `${model.name}/${model.version}`;
      const known = this.#known.get(name) ?? model;
      if (known.dim !== model.dim) {
        throw new CorruptReply(`the encoder serves another model as ${name}`);
      }
      this.#known.set(name, known);
    }
  }

  #changed(): void {
    for (const waiter of this.#waiting) waiter();
  }
}

/** The tries of one call. */
class Tries {
  readonly refusedBy = new Set<Endpoint>();
  /** Why the last encoder refused. */
  refusal: ServiceError | undefined;
  readonly #deadlineMs: number;
  #made = 0;
  #last: unknown;

  constructor({ deadlineMs }: EncodeOptions) {
    this.#deadlineMs = deadlineMs;
  }

  count(error: unknown): void {
    this.#made++;
    this.#last = error;
  }

  /** What was counted had a cause that is gone. */
  forgive(): void {
    this.#made = 0;
  }

  refused(endpoint: Endpoint, refusal: ServiceError): void {
    this.refusedBy.add(endpoint);
    this.refusal = refusal;
  }

  assertLeft(): void {
    if (Date.now() >= this.#deadlineMs)
      throw unavailable('the deadline passed while encoding', { cause: this.#last });
    if (this.#made >= attemptsMax) throw unavailable('the encoders keep failing', { cause: this.#last });
  }
}

/** How the process that the endpoint leads to now would be lost. */
function lossOf(endpoint: Endpoint): Loss {
  const { address, instance } = endpoint;
  return { address, isReplaced: () => instance !== '' && endpoint.instance !== instance };
}

function target({ model, modelVersion, tenantId }: EncodeOptions): {
  readonly model: ModelReference;
  readonly tenantId: string;
} {
  return { model: { name: model, version: modelVersion }, tenantId };
}

function tokensOf(texts: Iterable<string>): number {
  let tokens = 1;
  for (const text of texts) tokens += text.length / charactersPerToken;
  return tokens;
}

function unavailable(message: string, options: { cause?: unknown; seconds?: number } = {}): ServiceError {
  const { cause, seconds = 1 } = options;
  return new ServiceError('service_unavailable', message, { cause, retryAfterSeconds: seconds });
}

function delaySeconds(error: CallError): number {
  const [delayMs] = error.metadata.get(retryDelayTrailer);
  return Math.max(1, Math.ceil(Number(delayMs ?? 0) / 1000));
}
