/**
 * Sends any number of documents in batches that fit one request (50 documents, 5 MiB), several at once. Documents that
 * the service refuses, or that no request can carry, are collected, and those beside them go on. Batches are settled in the order of the input, whatever
 * order they end in, so a caller knows from where an import that was cut off goes on. Two batches with the same `doc_id`
 * are never in flight together, so the last document of an id stays.
 *
 * `Pace` says how many batches are in flight, and how many documents each has. A batch that comes late is sent again, perhaps
 * in parts, when its turn comes: the first in the input goes first.
 */
import { jsonText } from './encoding.ts';
import { ApiError, ImportError, MaxsimdError } from './errors.ts';
import { Pace } from './pace.ts';
import { isBroken, LateError } from './retry.ts';
import type { Document, UpsertResult } from './types.ts';

const bodyBytesMax = 5 * 1024 * 1024;
/** Batches that wait for an earlier one to be settled are bounded too. */
const unsettledPerSlot = 4;
const envelope = (documents: readonly string[]): string => `{"documents":[${documents.join(',')}]}`;
const envelopeBytes = Buffer.byteLength(envelope([]));

/** A document that may expire. A string has the form of RFC 3339. Null is the same as none. */
export interface ImportDocument extends Document {
  readonly expires_at?: Date | string | null;
}

export interface ImportOptions {
  /** Batches in flight; no more than the tenant's `max_concurrent_requests`. 2 where none is given. */
  readonly concurrency?: number;
  /**
   * The metadata field that keeps the text of each document, so that searches show passages. Metadata have at most 16 KiB; a
   * document with more is refused.
   */
  readonly keepText?: string;
  /** After each batch, in the order of the input. */
  readonly onProgress?: (progress: ImportProgress) => void;
  /** Ends the import at once, also while it waits for the next document. */
  readonly signal?: AbortSignal;
}

export interface ImportProgress {
  /** So many documents from the first on are stored or refused. An import of the documents after them goes on from here. */
  readonly settled: number;
  /** Stored. */
  readonly documents: number;
  readonly chunks: number;
  /** Refused. */
  readonly failed: number;
  readonly batch: ImportBatch;
}

/** The batch that was settled last. */
export interface ImportBatch {
  readonly failed: readonly ImportFailure[];
  /** `undefined`: every document was refused. */
  readonly answer: UpsertResult | undefined;
}

export interface ImportFailure {
  readonly doc_id: string;
  /** For people. */
  readonly error: string;
}

export interface ImportReport {
  readonly documents: number;
  readonly chunks: number;
  readonly failed: readonly ImportFailure[];
}

export interface ImportCalls {
  /** Sends one request; calls back when the concurrency limit refuses it. Rejects with a `LateError` if it came late. */
  readonly upsert: (
    request: { readonly json: string; readonly expiresAt: string | undefined },
    signal: AbortSignal,
    onConcurrencyLimit: () => void,
  ) => Promise<UpsertResult>;
  /** How many more the tenant may store. */
  readonly remainingDocuments: (signal: AbortSignal) => Promise<number>;
}

interface Item {
  readonly docId: string;
  readonly json: string;
}

/** Documents of one request, from the first attempt until they are settled. */
interface Batch {
  expiresAt: string | undefined;
  /** By their ids. */
  readonly items: Map<string, Item>;
  readonly refused: ImportFailure[];
  state: 'waits' | 'is sent' | 'has failed' | 'is stored';
  /** The most requests that were in flight at once with this one. */
  beside: number;
  lates: number;
  answer: UpsertResult | undefined;
}

/** `Promise.withResolvers`, which came with Node 22. */
function newEnd(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

export class Import {
  readonly #keepText: string | undefined;
  readonly #calls: ImportCalls;
  readonly #onProgress: ImportOptions['onProgress'];
  readonly #callerSignal: AbortSignal | undefined;
  readonly #stop = new AbortController();
  /** Of the caller, and of a batch that failed. */
  readonly #signal: AbortSignal;
  readonly #pace: Pace;
  /** In the order of the input, until they are settled. */
  readonly #batches: Batch[] = [];
  readonly #report = { documents: 0, chunks: 0, failed: [] as ImportFailure[] };
  #settled = 0;
  #failure: { readonly error: unknown } | undefined;
  #next = newBatch();
  #bytes = envelopeBytes;
  /** Resolved, and made anew, whenever a request has ended. */
  #ended = newEnd();

  constructor(calls: ImportCalls, { concurrency = 2, keepText, onProgress, signal }: ImportOptions) {
    this.#calls = calls;
    this.#keepText = keepText;
    this.#onProgress = onProgress;
    this.#callerSignal = signal;
    this.#signal = AbortSignal.any([this.#stop.signal, ...(signal === undefined ? [] : [signal])]);
    this.#pace = new Pace(concurrency);
  }

  async run(documents: Iterable<ImportDocument> | AsyncIterable<ImportDocument>): Promise<ImportReport> {
    try {
      for await (const document of untilAborted(documents, this.#signal)) await this.#take(document);
      await this.#start();
    } catch (error) {
      this.#failure ??= { error };
    }
    // An input that breaks off abandons nothing: the batches that were sent of it are settled first.
    while (this.#isBusy()) await this.#ended.promise;
    this.#callerSignal?.throwIfAborted();
    if (this.#failure !== undefined) throw new ImportError(this.#failure.error, this.#report);
    return this.#report;
  }

  async #take(document: ImportDocument): Promise<void> {
    const part = requestPart(document, this.#keepText);
    const isRefused = part instanceof MaxsimdError;
    if (!this.#fits(document.doc_id, part)) await this.#start();
    const { items, refused } = this.#next;
    if (isRefused) {
      refused.push({ doc_id: document.doc_id, error: part.message });
      return;
    }
    if (items.size === 0) this.#next.expiresAt = part.expiresAt;
    items.set(document.doc_id, { docId: document.doc_id, json: part.json });
    this.#bytes += bytesOf(part);
  }

  #fits(docId: string, part: RequestPart | MaxsimdError): boolean {
    const { items, refused, expiresAt } = this.#next;
    if (items.size + refused.length >= this.#pace.documents) return false;
    if (part instanceof MaxsimdError || items.size === 0) return true;
    const isSmall = this.#bytes + bytesOf(part) <= bodyBytesMax;
    return isSmall && !items.has(docId) && part.expiresAt === expiresAt;
  }

  async #start(): Promise<void> {
    const batch = this.#next;
    if (batch.items.size + batch.refused.length === 0) return;
    while (this.#mustWait(batch)) await this.#ended.promise;
    this.#signal.throwIfAborted();
    this.#batches.push(batch);
    this.#sendWaiting();
    this.#next = newBatch();
    this.#bytes = envelopeBytes;
  }

  #inFlight(): readonly Batch[] {
    return this.#batches.filter(({ state }) => state === 'is sent');
  }

  /** Whether a request will end without another document. */
  #isBusy(): boolean {
    const isOver = this.#signal.aborted;
    return this.#batches.some(({ state }) => state === 'is sent' || (state === 'waits' && !isOver));
  }

  #mustWait({ items }: Batch): boolean {
    if (this.#signal.aborted || !this.#isBusy()) return false;
    const { requests } = this.#pace;
    const unsettled = this.#batches.filter(({ state }) => state === 'is sent' || state === 'waits');
    if (unsettled.length >= requests || this.#batches.length >= unsettledPerSlot * requests) return true;
    return unsettled.some((batch) => [...items.keys()].some((docId) => batch.items.has(docId)));
  }

  /** Sends the batches that wait, as many as the pace allows. */
  #sendWaiting(): void {
    for (;;) {
      const inFlight = this.#inFlight();
      const at = this.#batches.findIndex(({ state }) => state === 'waits');
      const batch = this.#batches[at];
      if (batch === undefined || inFlight.length >= this.#pace.requests || this.#signal.aborted) return;
      this.#cut(batch, this.#pace.documents);
      batch.state = 'is sent';
      batch.beside = inFlight.length;
      for (const other of inFlight) other.beside = Math.max(other.beside, inFlight.length);
      void this.#fly(batch);
    }
  }

  /** Leaves the batch its first so many documents. The others become batches behind it. */
  #cut(batch: Batch, documents: number): void {
    if (batch.items.size <= documents) return;
    const rest = [...batch.items.values()].slice(documents);
    const parts: Batch[] = [];
    for (let first = 0; first < rest.length; first += documents) {
      const part = newBatch(batch.expiresAt);
      for (const item of rest.slice(first, first + documents)) {
        part.items.set(item.docId, item);
        batch.items.delete(item.docId);
      }
      parts.push(part);
    }
    this.#batches.splice(this.#batches.indexOf(batch) + 1, 0, ...parts);
    for (const part of [batch, ...parts]) part.lates = part.items.size === 1 ? 0 : 1;
  }

  /** Never rejects. */
  async #fly(batch: Batch): Promise<void> {
    try {
      batch.answer = await this.#upsert(batch);
      batch.state = 'is stored';
      if (batch.answer !== undefined) this.#pace.stored();
      this.#settle();
    } catch (error) {
      try {
        this.#sendLater(batch, error);
      } catch (failure) {
        batch.state = 'has failed';
        this.#failure ??= { error: failure };
        this.#stop.abort(failure);
      }
    }
    this.#sendWaiting();
    this.#ended.resolve();
    this.#ended = newEnd();
  }

  /** After a late answer. Throws the error that ends the import. */
  #sendLater(batch: Batch, error: unknown): void {
    if (!(error instanceof LateError)) throw error;
    const { beside, lates, items } = batch;
    const verdict = this.#pace.late({ documents: items.size, beside, lates });
    if (verdict === 'end') throw error.cause;
    if (verdict === 'give up') {
      for (const { docId } of items.values())
        batch.refused.push({ doc_id: docId, error: `sent alone three times: ${error.cause.message}` });
      items.clear();
      batch.state = 'is stored';
      this.#settle();
      return;
    }
    batch.lates += 1;
    batch.state = 'waits';
    this.#cut(batch, verdict);
  }

  /** Sends the documents until none is left that the service refuses alone. */
  async #upsert(batch: Batch): Promise<UpsertResult | undefined> {
    const { items, expiresAt, refused } = batch;
    while (items.size > 0) {
      const rest = [...items.values()];
      try {
        const json = envelope(rest.map((item) => item.json));
        const onLimit = (): void => this.#pace.refused();
        const answer = await this.#calls.upsert({ json, expiresAt }, this.#signal, onLimit);
        assertWhole(answer, rest.length);
        return answer;
      } catch (error) {
        for (const [{ docId }, message] of await this.#refusedItems(error, rest)) {
          refused.push({ doc_id: docId, error: message });
          items.delete(docId);
        }
      }
    }
    return undefined;
  }

  #settle(): void {
    const report = this.#report;
    for (let head = this.#batches[0]; head?.state === 'is stored'; head = this.#batches[0]) {
      this.#batches.shift();
      const { items, refused, answer } = head;
      const failed = [...refused, ...(answer?.failed ?? [])];
      this.#settled += items.size + refused.length;
      report.documents += answer?.upserted_documents ?? 0;
      report.chunks += answer?.upserted_chunks ?? 0;
      report.failed.push(...failed);
      this.#onProgress?.({
        settled: this.#settled,
        documents: report.documents,
        chunks: report.chunks,
        failed: report.failed.length,
        batch: { failed, answer },
      });
    }
  }

  /**
   * The items that are refused, each with the reason. Throws the error again when the import must stop. A request over the
   * allowance of stored documents is refused as a whole, as most that follow would be: that stops the import.
   */
  async #refusedItems(error: unknown, items: readonly Item[]): Promise<ReadonlyMap<Item, string>> {
    if (!(error instanceof ApiError) || !(isBroken(error) || [413, 422].includes(error.status))) throw error;
    const named = namedItems(error, items);
    if (named.size > 0) return named;
    const isOverAllowance =
      error.status === 422 && (await this.#calls.remainingDocuments(this.#signal)) < items.length;
    if (isOverAllowance) throw error;
    return new Map(items.map((item) => [item, error.message]));
  }
}

function newBatch(expiresAt?: string): Batch {
  const counts = { beside: 0, lates: 0 };
  return { expiresAt, items: new Map(), refused: [], state: 'waits', ...counts, answer: undefined };
}

/** Throws a `MaxsimdError` where the time is none. */
export function timeText(time: Date | string): string {
  if (typeof time === 'string') return time;
  try {
    return time.toISOString();
  } catch (error) {
    const words = 'expires_at: this is no time: pass a Date, or a string such as 2030-01-01T00:00:00Z';
    throw new MaxsimdError(words, { cause: error });
  }
}

interface RequestPart {
  readonly expiresAt: string | undefined;
  readonly json: string;
}

/** A document in a request, which its expiry is no part of. An error says why no request can carry it. */
function requestPart(document: ImportDocument, keepText: string | undefined): RequestPart | MaxsimdError {
  try {
    const { expires_at: expiry, ...rest } = document;
    const expiresAt = expiry === undefined || expiry === null ? undefined : timeText(expiry);
    const kept = keepText === undefined ? {} : { metadata: { ...rest.metadata, [keepText]: rest.text } };
    return { expiresAt, json: jsonText({ ...rest, ...kept }) };
  } catch (error) {
    if (error instanceof MaxsimdError) return error;
    throw error;
  }
}

/** With the comma. */
function bytesOf({ json }: RequestPart): number {
  return Buffer.byteLength(json) + 1;
}

/** Items that the issues of a refused request name, each with its first issue. */
function namedItems(error: ApiError, items: readonly Item[]): ReadonlyMap<Item, string> {
  const named = new Map<Item, string>();
  for (const issue of error.issues) {
    const [, position] = /^documents\.(\d+)(?:\.|$)/.exec(issue.path) ?? [];
    const item = position === undefined ? undefined : items[Number(position)];
    if (item !== undefined && !named.has(item)) named.set(item, `${issue.path}: ${issue.message}`);
  }
  return named;
}

function assertWhole({ upserted_documents: stored, failed }: UpsertResult, documents: number): void {
  if (stored + failed.length === documents) return;
  throw new ApiError('the answer to an upsert does not account for every document', {
    status: 200,
    code: 'unexpected_response',
    issues: [],
    requestId: undefined,
    retryAfterSeconds: undefined,
  });
}

/** The same documents. Ends with the signal's reason, also while the next one is waited for. */
async function* untilAborted(
  documents: Iterable<ImportDocument> | AsyncIterable<ImportDocument>,
  signal: AbortSignal,
): AsyncGenerator<ImportDocument> {
  const iterator =
    Symbol.asyncIterator in documents ? documents[Symbol.asyncIterator]() : documents[Symbol.iterator]();
  let end = (): void => {};
  signal.addEventListener('abort', () => end(), { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await new Promise<IteratorResult<ImportDocument, unknown>>((resolve, reject) => {
        end = () => reject(signal.reason);
        Promise.resolve(iterator.next()).then(resolve, reject);
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited: an iterator that waits for its source ends later, or never.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
