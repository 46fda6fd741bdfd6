/**
 * Sends any number of documents in batches that fit one request (50 documents, 5 MiB), several at once. Documents that
 * the service refuses, or that no request can carry, are collected, and those beside them go on. Batches are settled in the order of the input, whatever
 * order they end in, so a caller knows from where an import that was cut off goes on. Two batches with the same `doc_id`
 * are never in flight together, so the last document of an id stays.
 *
 * `Pace` says how many batches are in flight, and how many documents each has. A batch that comes late is sent again, perhaps
 * in parts, when its turn comes: the first in the input goes first.
 */
import { ApiError, ImportError, MaxsimdError } from '../errors.ts';
import { isBroken, LateError } from '../retry.ts';
import type { Document, StoredDocument, UpsertResult } from '../types.ts';
import { cuttingOf, partsOf, StaleParts, type Cutting } from './cut.ts';
import { addedNames, type AddedFields } from './metadata.ts';
import { Pace } from './pace.ts';
import { bytesOf, requestPart, type RequestPart } from './request-part.ts';

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
   * document with more is refused, or cut with `cut`.
   */
  readonly keepText?: string;
  /**
   * The metadata field that gets the words of each text that look like identifiers: 3 to 64 characters with a digit, an
   * underscore, an inner dot or camelCase, at most 64 a document. Create the index with this field in `match_fields`, and
   * searches find these words as a whole. They are then stored, which the text is not. Words for which the 16 KiB of metadata
   * have no room are left out.
   */
  readonly identifiers?: string;
  /**
   * Cuts longer documents at headings of Markdown, paragraphs and sentences into documents `ID#1`, `ID#2` and so on, with
   * `part_of`, `part` and `headings` in their metadata. `true`: at what a document may hold, 16 KiB of metadata with
   * `keepText` and 100 KiB of text. A number: bytes of text, at least 1,024. At the end, parts of earlier imports of these
   * documents that are no longer there are deleted. For this all documents of the index are listed, 1,000 a request.
   */
  readonly cut?: boolean | number;
  /** The last progress of an import that was cut off. The documents that are settled are read and not sent. */
  readonly resumed?: Pick<ImportProgress, 'settled' | 'failed'>;
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
  /** The document that this one is a part of, if the import cut it. */
  readonly part_of?: string;
  /** For people. */
  readonly error: string;
}

export interface ImportReport {
  readonly documents: number;
  readonly chunks: number;
  readonly failed: readonly ImportFailure[];
  /** Documents that were deleted because `cut` left them behind. */
  readonly deleted: number;
  /** Identifiers for which the metadata of their documents had no room. */
  readonly identifiersLeftOut: number;
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
  /** All documents of the index, with `part_of` and `part` of their metadata. */
  readonly storedParts: (signal: AbortSignal) => Promise<AsyncIterable<StoredDocument>>;
  readonly deleteDocument: (docId: string, signal: AbortSignal) => Promise<{ readonly deleted: boolean }>;
}

/** A document of a request. */
interface Item {
  readonly docId: string;
  readonly partOf: string | undefined;
  /** Whether a document of the input ends here. Only the last part of a document that was cut ends it. */
  readonly isLast: boolean;
  readonly json: string;
  /** Why it is not stored. */
  refusal: string | undefined;
}

/** Documents of one request, from the first attempt until they are settled. */
interface Batch {
  expiresAt: string | undefined;
  /** In the order of the input. */
  items: Item[];
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
  readonly #added: AddedFields;
  readonly #calls: ImportCalls;
  readonly #onProgress: ImportOptions['onProgress'];
  readonly #callerSignal: AbortSignal | undefined;
  readonly #stop = new AbortController();
  /** Of the caller, and of a batch that failed. */
  readonly #signal: AbortSignal;
  readonly #pace: Pace;
  /** In the order of the input, until they are settled. */
  readonly #batches: Batch[] = [];
  readonly #report = {
    documents: 0,
    chunks: 0,
    failed: [] as ImportFailure[],
    deleted: 0,
    identifiersLeftOut: 0,
  };
  readonly #cutting: Cutting | undefined;
  /** Absent where nothing is cut: then no ids are remembered, however many documents there are. */
  readonly #staleParts: StaleParts | undefined;
  readonly #resumed: NonNullable<ImportOptions['resumed']>;
  /** Documents of the input that are still to be skipped. */
  #toSkip: number;
  #settled: number;
  #failure: { readonly error: unknown } | undefined;
  #next = newBatch();
  #bytes = envelopeBytes;
  /** Resolved, and made anew, whenever a request has ended. */
  #ended = newEnd();

  constructor(calls: ImportCalls, options: ImportOptions) {
    const { concurrency = 2, onProgress, signal, resumed = { settled: 0, failed: 0 } } = options;
    addedNames(options);
    this.#calls = calls;
    this.#added = options;
    this.#cutting = cuttingOf(options);
    this.#staleParts = this.#cutting && new StaleParts();
    this.#resumed = resumed;
    this.#toSkip = resumed.settled;
    this.#settled = resumed.settled;
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
    try {
      if (this.#failure === undefined && this.#staleParts !== undefined)
        await this.#deleteStaleParts(this.#staleParts);
    } catch (error) {
      this.#failure = { error };
    }
    if (this.#failure !== undefined) throw new ImportError(this.#failure.error, this.#report);
    return this.#report;
  }

  async #deleteStaleParts(staleParts: StaleParts): Promise<void> {
    const stored = await this.#calls.storedParts(this.#signal);
    for (const docId of await staleParts.among(stored)) {
      const { deleted } = await this.#calls.deleteDocument(docId, this.#signal);
      if (deleted) this.#report.deleted += 1;
    }
  }

  /** A document of the input. */
  async #take(document: ImportDocument): Promise<void> {
    const parts = partsOf(document, this.#cutting);
    const isSkipped = this.#toSkip > 0;
    // Which of the skipped documents failed is not known.
    const isWhole = !(parts instanceof MaxsimdError) && !(isSkipped && this.#resumed.failed > 0);
    if (isWhole) this.#staleParts?.add(document.doc_id, parts.length);
    else this.#staleParts?.drop(document.doc_id);
    if (isSkipped) {
      this.#toSkip -= 1;
      return;
    }
    if (parts instanceof MaxsimdError) await this.#takePart(document, { isLast: true, refusal: parts });
    else
      for (const [place, part] of parts.entries())
        await this.#takePart(part, {
          isLast: place === parts.length - 1,
          ...(parts.length > 1 && { partOf: document.doc_id }),
        });
  }

  async #takePart(
    document: ImportDocument,
    place: { readonly isLast: boolean; readonly partOf?: string; readonly refusal?: MaxsimdError },
  ): Promise<void> {
    const part = place.refusal ?? requestPart(document, this.#added);
    const { isLast, partOf } = place;
    if (!this.#fits(document.doc_id, part)) await this.#start();
    const item = { docId: document.doc_id, partOf, isLast };
    if (part instanceof MaxsimdError) {
      this.#next.items.push({ ...item, json: '', refusal: part.message });
      return;
    }
    if (unrefused(this.#next).length === 0) this.#next.expiresAt = part.expiresAt;
    this.#report.identifiersLeftOut += part.identifiers.leftOut;
    this.#next.items.push({ ...item, json: part.json, refusal: undefined });
    this.#bytes += bytesOf(part);
  }

  #fits(docId: string, part: RequestPart | MaxsimdError): boolean {
    if (this.#next.items.length >= this.#pace.documents) return false;
    const items = unrefused(this.#next);
    if (part instanceof MaxsimdError || items.length === 0) return true;
    const isSmall = this.#bytes + bytesOf(part) <= bodyBytesMax;
    const isOther = !items.some((item) => item.docId === docId);
    return isSmall && isOther && part.expiresAt === this.#next.expiresAt;
  }

  async #start(): Promise<void> {
    const batch = this.#next;
    if (batch.items.length === 0) return;
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
    const docIds = new Set(items.map(({ docId }) => docId));
    return unsettled.some((batch) => batch.items.some(({ docId }) => docIds.has(docId)));
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
    const { items } = batch;
    if (unrefused(batch).length <= documents) return;
    batch.items = items.slice(0, documents);
    const parts: Batch[] = [];
    for (let first = documents; first < items.length; first += documents)
      parts.push({ ...newBatch(batch.expiresAt), items: items.slice(first, first + documents) });
    this.#batches.splice(this.#batches.indexOf(batch) + 1, 0, ...parts);
    for (const part of [batch, ...parts]) part.lates = part.items.length === 1 ? 0 : 1;
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
    const { beside, lates } = batch;
    const items = unrefused(batch);
    const verdict = this.#pace.late({ documents: items.length, beside, lates });
    if (verdict === 'end') throw error.cause;
    if (verdict === 'give up') {
      for (const item of items) item.refusal = `sent alone three times: ${error.cause.message}`;
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
    for (;;) {
      const rest = unrefused(batch);
      if (rest.length === 0) return undefined;
      try {
        const json = envelope(rest.map((item) => item.json));
        const onLimit = (): void => this.#pace.refused();
        const request = { json, expiresAt: batch.expiresAt };
        const answer = await this.#calls.upsert(request, this.#signal, onLimit);
        assertWhole(answer, rest.length);
        return answer;
      } catch (error) {
        for (const [item, message] of await this.#refusedItems(error, rest)) item.refusal = message;
      }
    }
  }

  #settle(): void {
    const report = this.#report;
    for (let head = this.#batches[0]; head?.state === 'is stored'; head = this.#batches[0]) {
      this.#batches.shift();
      const { items, answer } = head;
      const failed = failuresOf(head);
      for (const { doc_id: docId, part_of: partOf } of failed) this.#staleParts?.drop(partOf ?? docId);
      this.#settled += items.filter(({ isLast }) => isLast).length;
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
  return { expiresAt, items: [], state: 'waits', ...counts, answer: undefined };
}

function unrefused({ items }: Batch): readonly Item[] {
  return items.filter(({ refusal }) => refusal === undefined);
}

/** The documents of the batch that are not stored. */
function failuresOf({ items, answer }: Batch): readonly ImportFailure[] {
  const errors = new Map(answer?.failed.map(({ doc_id: docId, error }) => [docId, error]));
  return items.flatMap(({ docId, partOf, refusal }) => {
    const error = refusal ?? errors.get(docId);
    if (error === undefined) return [];
    return [{ doc_id: docId, ...(partOf !== undefined && { part_of: partOf }), error }];
  });
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
