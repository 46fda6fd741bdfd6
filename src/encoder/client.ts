/**
 * The encoder pool of the api process: several encoders behind the `Encoder` contract.
 *
 * A call goes to the encoder with the fewest tokens outstanding that serves its model version. What is safe is tried again
 * within the deadline: a query whose encoder went away, and of a document call only those documents that were
 * not given out yet, so none comes twice. When no encoder is up the call waits a moment for one to heal. A text
 * that ends one encoder process after the other is found out and refused (see `crash-suspects.ts`), and so is, for a
 * while, a tenant that sends many of them.
 */
import { ChannelCredentials } from '@grpc/grpc-js';
import type {
  EncodedDocument,
  EncodedQuery,
  EncodeDocumentsOptions,
  EncodeOptions,
  Encoder,
  EncoderModel,
  EncoderStatistics,
} from './contract.ts';
import { CrashSuspects, type Suspect } from './crash-suspects.ts';
import { type Attempt, encodeOnce, type Unfinished } from './document-call.ts';
import { Endpoint, type EndpointEvent } from './endpoint.ts';
import { Quarantine, type QuarantineTurn } from './quarantine.ts';
import { CorruptReply, decodeCounts, decodeQuery, refusedDocument, refusedQuery } from './replies.ts';
import { assertNotBraked, isLoss, Tries, unavailable } from './tries.ts';
import { type CountTokensResponse, type GetStatisticsResponse, type ModelReference } from './wire.ts';

export interface EncoderPoolOptions {
  /** `unix:/path` or `host:port`. */
  readonly addresses: readonly string[];
  /** PEM; without it connections are plain. Key and certificate make TLS mutual. */
  readonly tls?: { readonly ca: Buffer; readonly certificate?: Buffer; readonly key?: Buffer };
  readonly onEvent?: (event: EndpointEvent) => void;
  /**
   * Nobody else sends to these encoders. Only then is it known which text ended one, and such a text is refused; else
   * it is `service_unavailable`.
   */
  readonly exclusive?: boolean;
  /**
   * Processes that may end under single queries of a tenant, or its documents, in ten minutes; beyond, it has to wait.
   */
  readonly tenantEndsMax?: number;
  /** How long a call waits for an encoder to come (back), and how many may wait at a time. */
  readonly healWaitMs?: number;
  readonly waitingMax?: number;
  readonly healthIntervalMs?: number;
  readonly healthTimeoutMs?: number;
}

const defaults = {
  healWaitMs: 5000,
  waitingMax: 256,
  healthIntervalMs: 500,
  healthTimeoutMs: 1500,
  tenantEndsMax: 8,
};

const minuteMs = 60_000;
/** How long is remembered what ended encoders; a guilty one long enough for a batch with many of them to get through. */
const exclusiveKeepMs = { suspect: 10 * minuteMs, guilty: 60 * minuteMs };
/** Where others send to the encoders too, who seems guilty may be innocent: it has to wait a moment. */
const sharedKeepMs = { suspect: minuteMs / 2, guilty: minuteMs / 2 };
const suspectTextsMax = 1000;
/** Others must not wait until their own patience ends. */
const quarantineMs = 3000;
/** Queries are done by then, and documents may be long. */
const emptyingMs = 100;
/** Texts found guilty in one call. */
const convictionsMax = 3;

const statisticsMsMax = 1000;

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
  readonly #exclusive: boolean;
  readonly #suspects: CrashSuspects;
  readonly #quarantine = new Quarantine<Endpoint>({ lapseMs: quarantineMs, onEnd: () => this.#changed() });
  #closed = false;

  constructor(options: EncoderPoolOptions) {
    this.#healWaitMs = options.healWaitMs ?? defaults.healWaitMs;
    this.#waitingMax = options.waitingMax ?? defaults.waitingMax;
    this.#onEvent = options.onEvent ?? (() => undefined);
    this.#exclusive = options.exclusive ?? false;
    this.#suspects = new CrashSuspects({
      keepMs: this.#exclusive ? exclusiveKeepMs : sharedKeepMs,
      textsMax: suspectTextsMax,
      endsMax: this.#exclusive ? (options.tenantEndsMax ?? defaults.tenantEndsMax) : Infinity,
      endsWindowMs: 10 * minuteMs,
    });
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
    const tries = new Tries(options, this.#onEvent);
    for (;;) {
      const picked = await this.#pick(options, tries);
      const outcome = await this.#tryOnce(picked, tokensOf(texts), { tries }, async ({ endpoint }) => {
        const reply = await endpoint.unary<CountTokensResponse>('countTokens', request, options);
        return [...decodeCounts(reply.tokenCounts, texts.length)];
      });
      if (outcome !== undefined) return outcome.result;
    }
  }

  async encodeQuery(text: string, options: EncodeOptions): Promise<EncodedQuery> {
    const request = { ...target(options), text: text.toWellFormed() };
    const suspect = this.#suspects.about(text, 'query', options);
    const call = { options, tries: new Tries(options, this.#onEvent), suspect };
    for (;;) {
      const turn = suspect.goesAlone ? await this.#turn(options) : undefined;
      try {
        if (await this.#isGuilty(suspect, options)) {
          this.#tellConviction(suspect, 'fatal_query');
          return refusedQuery(fatalMessage);
        }
        const picked = await this.#pickFor([suspect], turn, call);
        if (picked === undefined) continue;
        const outcome = await this.#tryOnce(picked, tokensOf([text]), call, async ({ endpoint, model }) =>
          decodeQuery(await endpoint.query(request, options), model.dim),
        );
        if (outcome === undefined) continue;
        suspect.cleared();
        return outcome.result;
      } finally {
        turn?.end();
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
    const { chunking } = options;
    const suspects = texts.map((text) => this.#suspects.about(text, { chunking }, options));
    const call = { unfinished, suspects, options, tries: new Tries(options, this.#onEvent) };
    let convictions = 0;
    for (;;) {
      for (const position of unfinished.texts.keys()) {
        if (!(await this.#isGuilty(suspects[position]!, options))) continue;
        if (this.#tellConviction(suspects[position]!, 'fatal_document')) convictions++;
        call.tries.forgive();
        const inputTokens = (await this.#counts(texts, call))[position]!;
        unfinished.texts.delete(position);
        yield refusedDocument({ documentIndex: position, inputTokens, problem: fatalMessage });
      }
      const left = [...unfinished.texts.keys()];
      if (left.length === 0) return;
      const together = left.filter((position) => !suspects[position]!.goesAlone);
      const alone = together.length === 0;
      const positions = alone ? left.slice(0, 1) : together;
      if (positions.length < texts.length) await this.#counts(texts, call);
      const turn = alone ? await this.#turn(options) : undefined;
      try {
        // Another call may have found it out while this one waited for its turn.
        if (alone && suspects[left[0]!]!.guilty) continue;
        const sent = positions.map((position) => suspects[position]!);
        const picked = await this.#pickFor(sent, turn, call);
        if (picked === undefined) continue;
        const lost = yield* this.#attempt(picked, positions, call);
        if (lost && alone && convictions >= convictionsMax) {
          throw unavailable('several documents of the request end the encoder; the others were not tried');
        }
      } finally {
        turn?.end();
      }
    }
  }

  /** Tokens of every text. An attempt with all of them would tell the caller, and one with a part of them cannot. */
  async #counts(
    texts: readonly string[],
    { unfinished, options }: DocumentsCall,
  ): Promise<readonly number[]> {
    if (unfinished.inputTokens === undefined) {
      const counts = await this.countTokens(texts, options);
      await options.onTokenCounts(counts);
      unfinished.inputTokens = counts;
    }
    return unfinished.inputTokens;
  }

  /** Sends documents to one encoder; tells whether it was lost after it had begun to run them. */
  async *#attempt(
    { endpoint, model }: Picked,
    positions: readonly number[],
    { unfinished, suspects, tries, options }: DocumentsCall,
  ): AsyncGenerator<EncodedDocument, boolean, undefined> {
    const { admission } = endpoint;
    const attempt: Attempt = { positions, started: false };
    const call = endpoint.begin(tokensOf(positions.map((position) => unfinished.texts.get(position)!)));
    let answered = false;
    try {
      for await (const document of encodeOnce(endpoint, model, { unfinished, attempt, options })) {
        suspects[document.documentIndex]!.cleared();
        yield document;
      }
      answered = true;
      return false;
    } catch (error) {
      const lost = attempt.started && isLoss(error);
      const alone = positions.length === 1 && call.wasAlone();
      for (const position of lost ? positions : []) {
        if (unfinished.texts.has(position)) suspects[position]!.lost(admission, alone);
      }
      tries.failed(endpoint, error);
      return lost;
    } finally {
      call.end(answered);
    }
  }

  /** Whether the text ended encoders, for sure. Throws where that cannot be sure. */
  async #isGuilty(suspect: Suspect, { deadlineMs, signal }: EncodeOptions): Promise<boolean> {
    const { accusations } = suspect;
    const untilMs = Math.min(Date.now() + this.#healWaitMs, deadlineMs);
    while (accusations.some((loss) => loss.replaced === undefined) && (await this.#change(untilMs, signal))) {
      signal.throwIfAborted();
    }
    if (!suspect.guilty || this.#exclusive) return suspect.guilty;
    throw unavailable('encoders ended while they ran this text', { seconds: sharedKeepMs.guilty / 1000 });
  }

  /** Says so of a guilty text the first time; whether it did. */
  #tellConviction(suspect: Suspect, event: 'fatal_query' | 'fatal_document'): boolean {
    const loss = suspect.conviction();
    if (loss !== undefined) this.#onEvent({ event, address: loss.address, reason: fatalMessage });
    return loss !== undefined;
  }

  async #turn({ deadlineMs, signal }: EncodeOptions): Promise<QuarantineTurn<Endpoint>> {
    const late = AbortSignal.timeout(Math.max(0, deadlineMs - Date.now()));
    try {
      return await this.#quarantine.turn(AbortSignal.any([signal, late]));
    } catch (error) {
      signal.throwIfAborted();
      throw unavailable('the deadline passed while encoding', { cause: error });
    }
  }

  /** An encoder for these texts, in a turn one that runs nothing else; undefined when it is to be looked at anew. */
  async #pickFor(
    suspects: readonly Suspect[],
    turn: QuarantineTurn<Endpoint> | undefined,
    { options, tries }: Call,
  ): Promise<Picked | undefined> {
    assertNotBraked(suspects);
    const picked = await this.#pick(options, tries);
    // Once an encoder is there, it mostly is known what became of the one before.
    assertNotBraked(suspects);
    if (turn !== undefined) return this.#enter(picked, turn, suspects[0]!, options);
    return suspects.some(({ goesAlone }) => goesAlone) ? undefined : picked;
  }

  /**
   * Keeps others away from the encoder and waits until it runs nothing. Where that takes too long, a text that may go with
   * others does, and for another it is undefined.
   */
  async #enter(
    picked: Picked,
    turn: QuarantineTurn<Endpoint>,
    { goesAloneOnly }: Suspect,
    { deadlineMs, signal }: EncodeOptions,
  ): Promise<Picked | undefined> {
    const { endpoint } = picked;
    await turn.letOthersGo();
    turn.enter(endpoint);
    const untilMs = Math.min(Date.now() + (goesAloneOnly ? quarantineMs : emptyingMs), deadlineMs);
    while (endpoint.admitted && endpoint.quietFromMs > Date.now()) {
      signal.throwIfAborted();
      const changed = await this.#change(Math.min(untilMs, endpoint.quietFromMs), signal);
      if (changed || endpoint.quietFromMs <= Date.now()) continue;
      turn.end();
      return goesAloneOnly ? undefined : picked;
    }
    return endpoint.admitted ? picked : undefined;
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

  /** The result, or undefined when it may be tried again; throws when there is no use in another try. */
  async #tryOnce<T>(
    picked: Picked,
    tokens: number,
    { tries, suspect }: { readonly tries: Tries; readonly suspect?: Suspect },
    attempt: (picked: Picked) => Promise<T>,
  ): Promise<{ readonly result: T } | undefined> {
    const { endpoint } = picked;
    const { admission } = endpoint;
    const call = endpoint.begin(tokens);
    let answered = false;
    try {
      const result = await attempt(picked);
      answered = true;
      return { result };
    } catch (error) {
      if (isLoss(error)) suspect?.lost(admission, call.wasAlone());
      tries.failed(endpoint, error);
      return undefined;
    } finally {
      call.end(answered);
    }
  }

  /** The least loaded encoder that serves the version and did not refuse this call; waits a moment for one. */
  async #pick(options: EncodeOptions, tries: Tries): Promise<Picked> {
    const waitUntilMs = Math.min(Date.now() + this.#healWaitMs, options.deadlineMs);
    for (;;) {
      options.signal.throwIfAborted();
      tries.assertLeft();
      if (this.#closed) throw unavailable('the encoder pool is closed');
      let best: Endpoint | undefined;
      for (const endpoint of this.#endpoints) {
        if (!endpoint.serves(options.model, options.modelVersion) || tries.refusedBy.has(endpoint)) continue;
        if (endpoint === this.#quarantine.place) continue;
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

  /**
   * Waits until an encoder comes or goes or has nothing to do, the time is over or the signal aborts; false at once when
   * there is nothing to wait for: every encoder is in use, or too many wait already.
   */
  async #change(untilMs: number, signal: AbortSignal): Promise<boolean> {
    const leftMs = untilMs - Date.now();
    const allInUse =
      this.#endpoints.length > 0 &&
      this.#quarantine.place === undefined &&
      this.#endpoints.every(({ admitted }) => admitted);
    if (leftMs <= 0 || allInUse || this.#waiting.size >= this.#waitingMax) return false;
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

interface Picked {
  readonly endpoint: Endpoint;
  readonly model: EncoderModel;
}

interface Call {
  readonly options: EncodeOptions;
  readonly tries: Tries;
}

interface DocumentsCall extends Call {
  readonly options: EncodeDocumentsOptions;
  readonly unfinished: Unfinished;
  /** Of each text. */
  readonly suspects: readonly Suspect[];
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
