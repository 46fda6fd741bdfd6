/**
 * The encoder pool of the api process: several encoders behind the `EncoderPool` contract.
 *
 * A call goes to the encoder that `EncoderChoice` picks. When none is up, the call waits a moment for one. If the encoder goes
 * away, a query is tried again within its deadline. Of a document call only the documents are tried again that were not yielded
 * yet, so that none comes twice. A text that ends the encoder that runs it is found and refused (see `crash-guard.ts`).
 */
import type {
  EncodedDocument,
  EncodedQuery,
  EncodeDocumentsOptions,
  EncodeOptions,
  EncodeQueryOptions,
  EncoderPool,
  EncoderModel,
  EncoderStatistics,
  LocatedText,
  TokenSpans,
} from '../protocol/contract.ts';
import { UnencodableTexts } from './crash-guard.ts';
import { type Attempt, encodeOnce, type Unfinished } from './document-client.ts';
import { EncoderChoice, type EncoderChoiceOptions, type Picked } from './encoder-choice.ts';
import type { Endpoint, EndpointEvent, StartUnary } from './endpoint.ts';
import { decodeCounts, decodeQuery, decodeSpans, refusedDocument, refusedQuery } from './replies.ts';
import { isLoss, Tries, unavailable } from './tries.ts';
import { cutTokens } from '../protocol/token-cut.ts';
import type { CountTokensResponse, GetStatisticsResponse, LocateTokensResponse } from '../protocol/wire.ts';

export interface EncoderPoolOptions extends EncoderChoiceOptions {
  /**
   * No other process sends to these encoders. Only then is it known which text ended one, and the text is refused. Otherwise the
   * answer is `service_unavailable`.
   */
  readonly exclusive?: boolean;
  /** How long a call waits for an encoder to come back, and how many calls may wait. */
  readonly healWaitMs?: number;
  readonly waitingMax?: number;
}

const defaults = {
  healWaitMs: 5000,
  waitingMax: 256,
};

/** How long a text is refused that ended encoders. Where others send to them too, the text may be innocent. */
const keptOutMs = { exclusive: 600_000, shared: 30_000 };
/** A call ends when more of its documents than these are found unencodable. */
const unencodableDocumentsMax = 2;

const statisticsMsMax = 1000;
/** An encoder that is down starts again within seconds. */
const awaitedModelRetrySeconds = 5;

const endsEncoderMessage = 'the encoder ends when it runs this text';

export type SharedEncoderPool = EncoderPool & Pick<EncoderChoice, 'modelsOfAll'>;

export function createEncoderPool(options: EncoderPoolOptions): SharedEncoderPool {
  return new GrpcEncoderPool(options);
}

class GrpcEncoderPool implements SharedEncoderPool {
  readonly #choice: EncoderChoice;
  readonly #healWaitMs: number;
  readonly #waitingMax: number;
  readonly #onEvent: (event: EndpointEvent) => void;
  readonly #waiting = new Set<() => void>();
  readonly #exclusive: boolean;
  readonly #unencodable: UnencodableTexts;
  readonly #ended = new AbortController();

  constructor(options: EncoderPoolOptions) {
    this.#healWaitMs = options.healWaitMs ?? defaults.healWaitMs;
    this.#waitingMax = options.waitingMax ?? defaults.waitingMax;
    this.#onEvent = options.onEvent ?? (() => undefined);
    this.#exclusive = options.exclusive ?? false;
    this.#unencodable = new UnencodableTexts(this.#exclusive ? keptOutMs.exclusive : keptOutMs.shared);
    this.#choice = new EncoderChoice(options, () => this.#changed());
  }

  models(): readonly EncoderModel[] {
    return this.#choice.models();
  }

  modelsOfAll(): readonly EncoderModel[] {
    return this.#choice.modelsOfAll();
  }

  async modelNames(): Promise<readonly string[]> {
    return [...new Set(this.models().map(({ name }) => name))];
  }

  runsOnGpu(model: EncodeOptions['model']): boolean {
    return this.#choice.runsOnGpu(model);
  }

  ready(): boolean {
    return this.models().length > 0;
  }

  async awaitModel(
    { name, version }: { readonly name: string; readonly version?: string | undefined },
    { deadlineMs, signal }: Pick<EncodeOptions, 'deadlineMs' | 'signal'>,
  ): Promise<EncoderModel | undefined> {
    const waitUntilMs = Math.min(Date.now() + this.#healWaitMs, deadlineMs);
    const isWanted = (served: EncoderModel): boolean =>
      served.name === name && (version ?? served.version) === served.version;
    for (;;) {
      const model = this.models().find(isWanted);
      if (model !== undefined) return model;
      if (this.#ended.signal.aborted || !(await this.#change(waitUntilMs, signal))) break;
      signal.throwIfAborted();
    }
    // An encoder that is down may serve it.
    const mayCome = !this.ready() || this.#choice.known().some(isWanted);
    if (!mayCome) return undefined;
    throw unavailable('no encoder serves the model at the moment', { seconds: awaitedModelRetrySeconds });
  }

  async countTokens(texts: readonly string[], options: EncodeOptions): Promise<readonly number[]> {
    const request = { ...target(options), texts: texts.map((text) => text.toWellFormed()) };
    return this.#ask<CountTokensResponse, readonly number[]>(texts, options, {
      start: (rpc, limits, answer) => rpc.countTokens(request, limits, answer),
      decode: ({ tokenCounts }) => [...decodeCounts(tokenCounts, texts.length)],
    });
  }

  async locateTokens(located: LocatedText, options: EncodeOptions): Promise<TokenSpans> {
    const request = { ...target(options), ...located, text: located.text.toWellFormed() };
    return this.#ask<LocateTokensResponse, TokenSpans>([located.text], options, {
      start: (rpc, limits, answer) => rpc.locateTokens(request, limits, answer),
      decode: decodeSpans,
    });
  }

  /** Runs a call that needs no inference, on one encoder after another until one answers. */
  async #ask<Reply, Result>(
    texts: readonly string[],
    options: EncodeOptions,
    { start, decode }: { readonly start: StartUnary<Reply>; readonly decode: (reply: Reply) => Result },
  ): Promise<Result> {
    const call = this.#call(options);
    for (;;) {
      const { endpoint, open } = await this.#pick(call, texts);
      try {
        const reply = await endpoint.unary(start, options);
        open.answered();
        return decode(reply);
      } catch (error) {
        call.tries.failed(endpoint, error);
      } finally {
        open.end();
      }
    }
  }

  async encodeQuery(text: string, options: EncodeQueryOptions): Promise<EncodedQuery> {
    const request = {
      ...target(options),
      text: text.toWellFormed(),
      located: options.located === true,
    };
    const call = this.#call(options);
    try {
      for (;;) {
        const alone = !this.#isUnencodable(text, options) && (await this.#hasTurn(call));
        // While this call waited for its turn, another one may have found that the text is unencodable.
        if (this.#isUnencodable(text, options)) return refusedQuery(endsEncoderMessage);
        const { endpoint, model, open } = await this.#pick(call, [text], alone);
        try {
          const query = decodeQuery(await endpoint.query(request, options), model.dim);
          open.answered();
          this.#unencodable.clear(text, options);
          return query;
        } catch (error) {
          if (isLoss(error)) this.#lost(call, endpoint, text);
          call.tries.failed(endpoint, error);
        } finally {
          open.end();
        }
      }
    } finally {
      this.#leave(call);
    }
  }

  async *encodeDocuments(
    texts: readonly string[],
    options: EncodeDocumentsOptions,
  ): AsyncGenerator<EncodedDocument, void, undefined> {
    const unfinished: Unfinished = { texts: new Map(texts.entries()), inputTokens: undefined };
    const call: DocumentsCall = { ...this.#call(options), options, unfinished };
    let unencodableDocuments = 0;
    try {
      while (unfinished.texts.size > 0) {
        const alone = await this.#hasTurn(call);
        const wanted = [...unfinished.texts.keys()].slice(0, alone ? 1 : undefined);
        const unencodable = wanted.filter((position) => this.#isUnencodable(texts[position]!, options));
        const positions = wanted.filter((position) => !unencodable.includes(position));
        if (positions.length < texts.length) await this.#counts(texts, call);
        for (const documentIndex of unencodable) {
          unfinished.texts.delete(documentIndex);
          const inputTokens = unfinished.inputTokens![documentIndex]!;
          yield refusedDocument({ documentIndex, inputTokens, problem: endsEncoderMessage });
        }
        if (positions.length === 0) continue;
        if (!(yield* this.#attempt(positions, alone, call))) continue;
        if (++unencodableDocuments > unencodableDocumentsMax) {
          throw unavailable('several documents of the request end the encoder; the others were not tried');
        }
      }
    } finally {
      this.#leave(call);
    }
  }

  /** Counts the tokens of all texts for the caller. An attempt with all texts would do that, but one with some of them cannot. */
  async #counts(texts: readonly string[], { unfinished, options }: DocumentsCall): Promise<void> {
    if (unfinished.inputTokens !== undefined) return;
    const wholeCounts = await this.countTokens(texts, options);
    const counts = options.cut === undefined ? wholeCounts : cutTokens(wholeCounts, options.cut);
    await options.onTokenCounts(counts, wholeCounts);
    unfinished.inputTokens = counts;
  }

  /** Sends documents to one encoder. Returns whether the document, which is then the only one, was found unencodable. */
  async *#attempt(
    positions: readonly number[],
    alone: boolean,
    call: DocumentsCall,
  ): AsyncGenerator<EncodedDocument, boolean, undefined> {
    const { unfinished, options, tries } = call;
    const attempt: Attempt = { positions, started: false };
    const texts = positions.map((position) => unfinished.texts.get(position)!);
    const { endpoint, model, open } = await this.#pick(call, texts, alone);
    try {
      for await (const document of encodeOnce(endpoint, model, { unfinished, attempt, options })) {
        this.#unencodable.clear(texts[positions.indexOf(document.documentIndex)]!, options);
        yield document;
      }
      open.answered();
      this.#pass(call);
      return false;
    } catch (error) {
      const isUnencodable = attempt.started && isLoss(error) && this.#lost(call, endpoint, texts[0]!);
      tries.failed(endpoint, error);
      return isUnencodable;
    } finally {
      open.end();
    }
  }

  /** Whether the text ended encoders. Throws where texts of other processes may have ended them. */
  #isUnencodable(text: string, options: EncodeOptions): boolean {
    if (!this.#unencodable.has(text, options)) return false;
    if (this.#exclusive) return true;
    throw unavailable('encoders ended while they ran this text', { seconds: keptOutMs.shared / 1000 });
  }

  /** Notes that an encoder ended during the call. Returns whether `text`, which it may have run alone, is unencodable. */
  #lost(call: Call, endpoint: Endpoint, text: string): boolean {
    const { options, tries } = call;
    const alone = endpoint.retrial.hasTurn(call);
    call.lostBy = endpoint;
    endpoint.retrial.join(call);
    if (!alone) return false;
    tries.forgive();
    if (!this.#unencodable.noteEnd(text, options)) return false;
    const event = 'chunking' in options ? 'unencodable_document' : 'unencodable_query';
    if (this.#exclusive) this.#onEvent({ event, address: endpoint.address, reason: endsEncoderMessage });
    return true;
  }

  /** Waits until a lost call has its encoder to itself. Returns false for other calls, and where it cannot have that. */
  async #hasTurn(call: Call): Promise<boolean> {
    const { lostBy, options } = call;
    if (lostBy === undefined) return false;
    const waitUntilMs = Math.min(Date.now() + this.#healWaitMs, options.deadlineMs);
    while (!lostBy.admitted || !lostBy.retrial.hasTurn(call)) {
      const mayCome =
        !this.#ended.signal.aborted && !lostBy.retired && (!lostBy.admitted || lostBy.retrial.isOpen);
      if (!mayCome || !(await this.#change(waitUntilMs, options.signal))) {
        this.#leave(call);
        return false;
      }
      options.signal.throwIfAborted();
    }
    return true;
  }

  /** Lets other lost calls have their turns before this one has its next. */
  #pass(call: Call): void {
    if (call.lostBy === undefined) return;
    call.lostBy.retrial.pass(call);
    this.#changed();
  }

  #leave(call: Call): void {
    if (call.lostBy === undefined) return;
    call.lostBy.retrial.leave(call);
    call.lostBy = undefined;
    this.#changed();
  }

  #call(options: EncodeOptions): Call {
    return { options, tries: new Tries(options, this.#onEvent), lostBy: undefined };
  }

  async statistics(): Promise<readonly EncoderStatistics[]> {
    const reported = this.#choice.admitted().map(async (endpoint) => {
      const limits = { deadlineMs: Date.now() + statisticsMsMax, signal: new AbortController().signal };
      const statistics = await endpoint.unary<GetStatisticsResponse>(
        (rpc, callLimits, answer) => rpc.getStatistics({}, callLimits, answer),
        limits,
      );
      return { ...statistics, address: endpoint.address };
    });
    return (await Promise.allSettled(reported)).flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value] : [],
    );
  }

  async close(): Promise<void> {
    this.#ended.abort();
    this.#choice.close();
    this.#changed();
  }

  /** Picks an encoder, and waits a moment for one. `alone`: the call has its encoder to itself. */
  async #pick(call: Call, texts: readonly string[], alone = false): Promise<Picked> {
    const { options, tries, lostBy } = call;
    const waitUntilMs = Math.min(Date.now() + this.#healWaitMs, options.deadlineMs);
    for (;;) {
      options.signal.throwIfAborted();
      tries.assertLeft();
      if (this.#ended.signal.aborted) throw unavailable('the encoder pool is closed');
      const picked = this.#choice.pick(call, texts, alone ? lostBy : undefined);
      if (picked !== undefined) return picked;
      if (tries.refusal !== undefined) throw tries.refusal;
      if (!(await this.#change(waitUntilMs, options.signal))) {
        throw unavailable(
          `no encoder serves model ${options.model.name} version ${options.model.version} at the moment`,
        );
      }
    }
  }

  /**
   * Waits until an encoder comes or goes, a retrial ends, the time is over, or the signal aborts. Returns false at once when all
   * encoders are in use, or when too many calls wait already.
   */
  async #change(untilMs: number, signal: AbortSignal): Promise<boolean> {
    const leftMs = untilMs - Date.now();
    if (leftMs <= 0 || this.#choice.allInUse || this.#waiting.size >= this.#waitingMax) return false;
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

  #changed(): void {
    for (const waiter of this.#waiting) waiter();
  }
}

interface Call {
  readonly options: EncodeOptions;
  readonly tries: Tries;
  /** The encoder whose process ended during the call, while the call waits for the next process. */
  lostBy: Endpoint | undefined;
}

interface DocumentsCall extends Call {
  readonly options: EncodeDocumentsOptions;
  readonly unfinished: Unfinished;
}

function target({ model, tenantId }: EncodeOptions): Pick<EncodeOptions, 'model' | 'tenantId'> {
  return { model, tenantId };
}
