/**
 * Sends any number of documents in batches that fit one request (50 documents, 5 MiB), several at once. Documents that
 * the service refuses are collected, and those beside them go on. Batches are settled in the order of the input, whatever
 * order they end in, so a caller knows from where an import that was cut off goes on. Two batches with the same `doc_id`
 * are never in flight together, so the last document of an id stays.
 *
 * The number of batches in flight follows the service: one less when the concurrency limit refuses one, and one more after
 * a row of batches that were stored, up to the number that the caller gave.
 */
import { jsonText } from './encoding.ts';
import { ApiError, ImportError } from './errors.ts';
import { isBroken } from './retry.ts';
import type { Document, UpsertResult } from './types.ts';

const documentsMax = 50;
const bodyBytesMax = 5 * 1024 * 1024;
const successesPerStepUp = 20;
/** Batches that wait for an earlier one to be settled are bounded too. */
const unsettledPerSlot = 4;
const envelope = (documents: readonly string[]): string => `{"documents":[${documents.join(',')}]}`;
const envelopeBytes = Buffer.byteLength(envelope([]));

/** A document that may expire. A string has the form of RFC 3339. */
export interface ImportDocument extends Document {
  readonly expires_at?: Date | string;
}

export interface ImportOptions {
  /** Batches in flight; no more than the tenant's `max_concurrent_requests`. 2 where none is given. */
  readonly concurrency?: number;
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
  /** Sends one request; calls back when the concurrency limit refuses it. */
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

interface Flight {
  readonly expiresAt: string | undefined;
  readonly items: ReadonlyMap<string, Item>;
  /** Never rejects. */
  landed: Promise<void>;
  outcome: ImportBatch | undefined;
}

export class Import {
  readonly #calls: ImportCalls;
  readonly #onProgress: ImportOptions['onProgress'];
  readonly #callerSignal: AbortSignal | undefined;
  readonly #stop = new AbortController();
  /** Of the caller, and of a batch that failed. */
  readonly #signal: AbortSignal;
  readonly #concurrencyMax: number;
  /** In the order of the input, until they are settled. */
  readonly #flights: Flight[] = [];
  readonly #report = { documents: 0, chunks: 0, failed: [] as ImportFailure[] };
  #settled = 0;
  #concurrency: number;
  #successes = 0;
  #failure: { readonly error: unknown } | undefined;
  #batch = new Map<string, Item>();
  #expiresAt: string | undefined;
  #bytes = envelopeBytes;

  constructor(calls: ImportCalls, { concurrency = 2, onProgress, signal }: ImportOptions) {
    this.#calls = calls;
    this.#onProgress = onProgress;
    this.#callerSignal = signal;
    this.#signal = AbortSignal.any([this.#stop.signal, ...(signal === undefined ? [] : [signal])]);
    this.#concurrencyMax = Math.max(1, concurrency);
    this.#concurrency = this.#concurrencyMax;
  }

  async run(documents: Iterable<ImportDocument> | AsyncIterable<ImportDocument>): Promise<ImportReport> {
    try {
      for await (const document of untilAborted(documents, this.#signal)) await this.#take(document);
      await this.#start();
    } catch (error) {
      this.#failure ??= { error };
    }
    // An input that breaks off abandons nothing: the batches that were sent of it are settled first.
    await Promise.all(this.#flights.map(({ landed }) => landed));
    this.#callerSignal?.throwIfAborted();
    if (this.#failure !== undefined) throw new ImportError(this.#failure.error, this.#report);
    return this.#report;
  }

  async #take(document: ImportDocument): Promise<void> {
    const { expiresAt, json } = requestPart(document);
    const item = { docId: document.doc_id, json };
    const itemBytes = Buffer.byteLength(item.json) + 1;
    const isFull = this.#batch.size === documentsMax || this.#bytes + itemBytes > bodyBytesMax;
    if (isFull || this.#batch.has(item.docId) || expiresAt !== this.#expiresAt) await this.#start();
    this.#expiresAt = expiresAt;
    this.#batch.set(item.docId, item);
    this.#bytes += itemBytes;
  }

  async #start(): Promise<void> {
    const items = this.#batch;
    if (items.size === 0) return;
    while (this.#mustWait(items)) await Promise.race(this.#inFlight().map(({ landed }) => landed));
    this.#signal.throwIfAborted();
    const flight: Flight = {
      items,
      expiresAt: this.#expiresAt,
      outcome: undefined,
      landed: Promise.resolve(),
    };
    this.#flights.push(flight);
    flight.landed = this.#fly(flight);
    this.#batch = new Map();
    this.#bytes = envelopeBytes;
  }

  #inFlight(): readonly Flight[] {
    return this.#flights.filter(({ outcome }) => outcome === undefined);
  }

  #mustWait(items: ReadonlyMap<string, Item>): boolean {
    const inFlight = this.#inFlight();
    if (this.#signal.aborted || inFlight.length === 0) return false;
    if (inFlight.length >= this.#concurrency) return true;
    if (this.#flights.length >= unsettledPerSlot * this.#concurrency) return true;
    return inFlight.some((flight) => [...items.keys()].some((docId) => flight.items.has(docId)));
  }

  async #fly(flight: Flight): Promise<void> {
    try {
      flight.outcome = await this.#upsert([...flight.items.values()], flight.expiresAt);
      this.#successes += 1;
      if (this.#successes % successesPerStepUp === 0)
        this.#concurrency = Math.min(this.#concurrencyMax, this.#concurrency + 1);
      this.#settle();
    } catch (error) {
      this.#failure ??= { error };
      this.#stop.abort(error);
    }
  }

  /** Sends the items until none is left that the service refuses alone. */
  async #upsert(items: readonly Item[], expiresAt: string | undefined): Promise<ImportBatch> {
    const failed: ImportFailure[] = [];
    for (let rest = items; rest.length > 0;) {
      try {
        const json = envelope(rest.map((item) => item.json));
        const request = { json, expiresAt };
        const answer = await this.#calls.upsert(request, this.#signal, () => this.#slowDown());
        assertWhole(answer, rest.length);
        return { failed: [...failed, ...answer.failed], answer };
      } catch (error) {
        const refused = await this.#refusedItems(error, rest);
        for (const [item, message] of refused) failed.push({ doc_id: item.docId, error: message });
        rest = rest.filter((item) => !refused.has(item));
      }
    }
    return { failed, answer: undefined };
  }

  #slowDown(): void {
    this.#concurrency = Math.max(1, this.#concurrency - 1);
    this.#successes = 0;
  }

  #settle(): void {
    const report = this.#report;
    for (let head = this.#flights[0]; head?.outcome !== undefined; head = this.#flights[0]) {
      this.#flights.shift();
      const { failed, answer } = head.outcome;
      this.#settled += head.items.size;
      report.documents += answer?.upserted_documents ?? 0;
      report.chunks += answer?.upserted_chunks ?? 0;
      report.failed.push(...failed);
      this.#onProgress?.({
        settled: this.#settled,
        documents: report.documents,
        chunks: report.chunks,
        failed: report.failed.length,
        batch: head.outcome,
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

export function timeText(time: Date | string): string {
  return typeof time === 'string' ? time : time.toISOString();
}

/** The expiry of a document is no part of it in a request. */
function requestPart(document: ImportDocument): { expiresAt: string | undefined; json: string } {
  if (document.expires_at === undefined) return { expiresAt: undefined, json: jsonText(document) };
  const { expires_at: expiresAt, ...rest } = document;
  return { expiresAt: timeText(expiresAt), json: jsonText(rest) };
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
